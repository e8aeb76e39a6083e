//! The crate rdkafka, by the rules of program.py: jobs come in as lines, answers go out as JSON.

mod admin;
mod client;
mod words;

use serde_json::{json, Value};
use std::io::BufRead;
use words::{pairs, Given};

pub type Answer = Result<Value, Box<dyn std::error::Error>>;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut client = client::Client::new(&arguments[0], pairs(arguments[1..].iter().map(String::as_str)));
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("text");
        let mut words = line.split_whitespace();
        let verb = words.next().expect("a verb");
        let answer = act(&mut client, verb, &pairs(words));
        println!("{}", answer.unwrap_or_else(|problem| json!({"error": problem.to_string()})));
    }
}

fn act(client: &mut client::Client, verb: &str, given: &Given) -> Answer {
    match verb {
        "version" => Ok(json!({"version": client::version()})),
        "produce" => client.produce(given),
        "consume" => client.consume(given),
        "position" => client.position(given),
        "transact" => client.transact(given),
        "join" => client.join(given),
        "poll" => client.poll(given),
        "commit" => client.commit(),
        "leave" => client.leave(),
        _ => admin::administer(client, verb, given),
    }
}
