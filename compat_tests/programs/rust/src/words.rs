//! Jobs and records as text.

use rdkafka::message::{BorrowedMessage, Header, Headers, Message, OwnedHeaders};
use serde_json::{json, Value};
use std::collections::HashMap;

pub struct Given(pub HashMap<String, String>);

pub fn pairs<'a>(words: impl Iterator<Item = &'a str>) -> Given {
    let split = |word: &'a str| word.split_once('=').expect("name=value");
    Given(words.map(split).map(|(name, value)| (name.to_string(), value.to_string())).collect())
}

impl Given {
    pub fn text(&self, name: &str) -> &str {
        self.or(name, "")
    }

    pub fn or<'a>(&'a self, name: &str, otherwise: &'a str) -> &'a str {
        self.0.get(name).map_or(otherwise, String::as_str)
    }

    pub fn number(&self, name: &str, otherwise: i64) -> i64 {
        self.0.get(name).map_or(otherwise, |word| word.parse().expect("a number"))
    }

    pub fn partition(&self) -> i32 {
        self.number("partition", 0) as i32
    }
}

pub struct Record {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: OwnedHeaders,
}

/// `key,value,name,value,...;...`, each in hexadecimal, `-` for null.
pub fn records(text: &str) -> Vec<Record> {
    text.split(';').map(record).collect()
}

fn record(text: &str) -> Record {
    let words: Vec<Option<Vec<u8>>> = text.split(',').map(bytes).collect();
    let mut headers = OwnedHeaders::new();
    for pair in words[2..].chunks(2) {
        let name = String::from_utf8(pair[0].clone().expect("a name")).expect("text");
        headers = headers.insert(Header { key: &name, value: pair[1].as_ref() });
    }
    Record { key: words[0].clone(), value: words[1].clone(), headers }
}

fn bytes(word: &str) -> Option<Vec<u8>> {
    let digit = |each: u8| (each as char).to_digit(16).expect("a digit") as u8;
    (word != "-").then(|| word.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
}

pub fn hex(data: Option<&[u8]>) -> Option<String> {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let mut text = String::with_capacity(data.map_or(0, <[u8]>::len) * 2);
    for each in data? {
        text.push(DIGITS[usize::from(each >> 4)]);
        text.push(DIGITS[usize::from(each & 15)]);
    }
    Some(text)
}

pub fn told(message: &BorrowedMessage) -> Value {
    let headers: Vec<Value> = message
        .headers()
        .map(|all| all.iter().map(|each| json!([each.key, hex(each.value)])).collect())
        .unwrap_or_default();
    json!({
        "offset": message.offset(),
        "timestamp": message.timestamp().to_millis(),
        "key": hex(message.key()),
        "value": hex(message.payload()),
        "headers": headers,
    })
}
