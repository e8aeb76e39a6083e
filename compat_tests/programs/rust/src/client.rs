//! Writing, reading, and being a member of a group.

use crate::words::{hex, records, told, Given};
use crate::Answer;
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{DeliveryResult, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Value};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    pub common: ClientConfig,
    member: Option<BaseConsumer>,
}

pub fn version() -> String {
    format!("0.39.0 (librdkafka {})", rdkafka::util::get_rdkafka_version().1)
}

/// What became of each record, in the order of the answers.
#[derive(Default)]
struct Deliveries(Mutex<Vec<Result<i64, String>>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let outcome = result.as_ref().map(|message| message.offset()).map_err(|(problem, _)| problem.to_string());
        self.0.lock().unwrap().push(outcome);
    }
}

impl Client {
    pub fn new(bootstrap: &str, settings: Given) -> Client {
        let mut common = ClientConfig::new();
        common.set("bootstrap.servers", bootstrap).set("log_level", "0");
        for (name, value) in &settings.0 {
            common.set(name, value);
        }
        Client { common, member: None }
    }

    pub fn produce(&self, given: &Given) -> Answer {
        let mut config = self.common.clone();
        config
            .set("compression.type", given.or("codec", "none"))
            .set("acks", given.or("acks", "all"))
            .set("enable.idempotence", given.or("idempotent", "false"))
            .set("message.max.bytes", (20 << 20).to_string())
            .set("linger.ms", "5");
        let producer: BaseProducer<Deliveries> = config.create_with_context(Deliveries::default())?;
        Ok(json!({"offsets": send(&producer, given)?}))
    }

    pub fn consume(&self, given: &Given) -> Answer {
        let consumer = self.consumer(given.or("isolation", "read_uncommitted"))?;
        let mut places = TopicPartitionList::new();
        places.add_partition_offset(given.text("topic"), given.partition(), Offset::Offset(given.number("start", 0)))?;
        consumer.assign(&places)?;
        let mut found: Vec<Value> = Vec::new();
        while (found.len() as i64) < given.number("count", 0) {
            match consumer.poll(Duration::from_secs(15)) {
                Some(message) => found.push(told(&message?)),
                None => break,
            }
        }
        Ok(json!({"records": found}))
    }

    pub fn position(&self, given: &Given) -> Answer {
        let consumer = self.consumer("read_uncommitted")?;
        let (topic, partition) = (given.text("topic"), given.partition());
        let position = match given.text("at") {
            "earliest" => consumer.fetch_watermarks(topic, partition, PATIENCE)?.0,
            "latest" => consumer.fetch_watermarks(topic, partition, PATIENCE)?.1,
            _ => {
                let mut places = TopicPartitionList::new();
                places.add_partition_offset(topic, partition, Offset::Offset(given.number("at", 0)))?;
                let found = consumer.offsets_for_times(places, PATIENCE)?;
                found.elements()[0].offset().to_raw().expect("an offset")
            }
        };
        Ok(json!({"position": position}))
    }

    pub fn consumer(&self, isolation: &str) -> Result<BaseConsumer, rdkafka::error::KafkaError> {
        let mut config = self.common.clone();
        config
            .set("group.id", "none")
            .set("enable.auto.commit", "false")
            .set("isolation.level", isolation)
            .set("fetch.message.max.bytes", (20 << 20).to_string());
        config.create()
    }

    pub fn transact(&self, given: &Given) -> Answer {
        let mut config = self.common.clone();
        config.set("transactional.id", given.text("name"));
        let producer: BaseProducer<Deliveries> = config.create_with_context(Deliveries::default())?;
        producer.init_transactions(PATIENCE)?;
        producer.begin_transaction()?;
        send(&producer, given)?;
        match given.text("end") {
            "commit" => producer.commit_transaction(PATIENCE)?,
            _ => producer.abort_transaction(PATIENCE)?,
        }
        Ok(json!({}))
    }

    pub fn join(&mut self, given: &Given) -> Answer {
        let mut config = self.common.clone();
        let protocol = given.or("protocol", "classic");
        config
            .set("group.id", given.text("group"))
            .set("group.protocol", protocol)
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false");
        if protocol == "classic" {
            config.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "500");
        }
        let consumer: BaseConsumer = config.create()?;
        consumer.subscribe(&[given.text("topic")])?;
        self.member = Some(consumer);
        Ok(json!({}))
    }

    pub fn poll(&self, given: &Given) -> Answer {
        let member = self.member.as_ref().ok_or("not a member")?;
        let deadline = Instant::now() + Duration::from_secs_f64(given.text("seconds").parse()?);
        let mut values: Vec<Option<String>> = Vec::new();
        while Instant::now() < deadline {
            match member.poll(Duration::from_millis(if values.is_empty() { 100 } else { 10 })) {
                Some(Ok(message)) => values.push(hex(message.payload())),
                Some(Err(_)) => {} // of the time between two generations
                None if !values.is_empty() => break,
                None => {}
            }
        }
        let mut partitions: Vec<i32> = member.assignment()?.elements().iter().map(|each| each.partition()).collect();
        partitions.sort();
        Ok(json!({"assignment": partitions, "values": values}))
    }

    pub fn commit(&self) -> Answer {
        self.member.as_ref().ok_or("not a member")?.commit_consumer_state(CommitMode::Sync)?;
        Ok(json!({}))
    }

    pub fn leave(&mut self) -> Answer {
        self.member = None; // it leaves when it is dropped
        Ok(json!({}))
    }
}

fn send(producer: &BaseProducer<Deliveries>, given: &Given) -> Result<Vec<i64>, Box<dyn std::error::Error>> {
    for (index, each) in records(given.text("records")).into_iter().enumerate() {
        let mut record = BaseRecord::<Vec<u8>, Vec<u8>>::to(given.text("topic"))
            .partition(given.partition())
            .headers(each.headers);
        record.key = each.key.as_ref();
        record.payload = each.value.as_ref();
        if given.0.contains_key("timestamp") {
            record = record.timestamp(given.number("timestamp", 0) + 1000 * index as i64);
        }
        producer.send(record).map_err(|(problem, _)| problem)?;
    }
    producer.flush(Duration::from_secs(30))?;
    let outcomes = std::mem::take(&mut *producer.context().0.lock().unwrap());
    Ok(outcomes.into_iter().collect::<Result<Vec<i64>, String>>()?)
}
