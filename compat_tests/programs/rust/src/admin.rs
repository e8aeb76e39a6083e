//! Topics, settings, groups.

use crate::client::{Client, PATIENCE};
use crate::words::Given;
use crate::Answer;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Map};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{current, park, Thread};

pub fn administer(client: &Client, verb: &str, given: &Given) -> Answer {
    let admin: AdminClient<DefaultClientContext> = client.common.create()?;
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
    let (topic, group) = (given.text("topic"), given.text("group"));
    match verb {
        "create" => {
            let mut wish = NewTopic::new(topic, given.number("partitions", 1) as i32, TopicReplication::Fixed(1));
            for (name, value) in given.0.iter().filter(|(name, _)| !["topic", "partitions"].contains(&name.as_str())) {
                wish = wish.set(name, value);
            }
            first(wait(admin.create_topics(&[wish], &options))?)
        }
        "delete" => first(wait(admin.delete_topics(&[topic], &options))?),
        "grow" => {
            let wish = NewPartitions::new(topic, given.number("partitions", 0) as usize);
            first(wait(admin.create_partitions(&[wish], &options))?)
        }
        "topics" => {
            let metadata = admin.inner().fetch_metadata(None, PATIENCE)?;
            let mut names: Vec<&str> = metadata.topics().iter().map(|each| each.name()).collect();
            names.sort();
            Ok(json!({"topics": names}))
        }
        "describe" => Ok(json!({"partitions": partitions(&admin, topic)?})),
        "configs" => {
            let found = wait(admin.describe_configs(&[ResourceSpecifier::Topic(topic)], &options))?;
            let resource = found.into_iter().next().ok_or("no answer")??;
            Ok(json!({"value": resource.get(given.text("name")).ok_or("no such setting")?.value}))
        }
        "alter" => {
            let wish = AlterConfig::new(ResourceSpecifier::Topic(topic)).set(given.text("name"), given.text("value"));
            match wait(admin.alter_configs(&[wish], &options))?.remove(0) {
                Ok(_) => Ok(json!({})),
                Err((_, code)) => Err(code.to_string().into()),
            }
        }
        "groups" => {
            let found = client.consumer("read_uncommitted")?.fetch_group_list(None, PATIENCE)?;
            let mut names: Vec<&str> = found.groups().iter().map(|each| each.name()).collect();
            names.sort();
            Ok(json!({"groups": names}))
        }
        "describe-group" => {
            let found = client.consumer("read_uncommitted")?.fetch_group_list(Some(group), PATIENCE)?;
            let described = found.groups().first().ok_or("no such group")?;
            Ok(json!({"state": described.state(), "members": described.members().len()}))
        }
        "group-offsets" => group_offsets(client, &admin, group, topic),
        "delete-group" => first(wait(admin.delete_groups(&[group], &options))?),
        "delete-records" => {
            let mut wish = TopicPartitionList::new();
            wish.add_partition_offset(topic, given.partition(), Offset::Offset(given.number("offset", 0)))?;
            let done = wait(admin.delete_records(&wish, &options))?;
            Ok(json!({"low_watermark": done.elements()[0].offset().to_raw()}))
        }
        _ => Err(format!("no such job: {verb}").into()),
    }
}

/// The one result there is.
fn first<E: std::fmt::Debug>(results: Vec<Result<String, (String, E)>>) -> Answer {
    match results.into_iter().next() {
        Some(Ok(_)) => Ok(json!({})),
        other => Err(format!("{other:?}").into()),
    }
}

fn partitions(
    admin: &AdminClient<DefaultClientContext>, topic: &str,
) -> Result<Vec<i32>, Box<dyn std::error::Error>> {
    let metadata = admin.inner().fetch_metadata(Some(topic), PATIENCE)?;
    let mut found: Vec<i32> = metadata.topics()[0].partitions().iter().map(|each| each.id()).collect();
    found.sort();
    Ok(found)
}

fn group_offsets(client: &Client, admin: &AdminClient<DefaultClientContext>, group: &str, topic: &str) -> Answer {
    let mut config = client.common.clone();
    let consumer: BaseConsumer = config.set("group.id", group).create()?;
    let mut places = TopicPartitionList::new();
    for partition in partitions(admin, topic)? {
        places.add_partition(topic, partition);
    }
    let found = consumer.committed_offsets(places, PATIENCE)?;
    let told = found.elements().into_iter().map(|each| (each.partition().to_string(), json!(each.offset().to_raw())));
    Ok(json!({"offsets": told.collect::<Map<_, _>>()}))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// This thread sleeps until the future is there: that saves a runtime.
fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Arc::new(Unpark(current())).into();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => park(),
        }
    }
}
