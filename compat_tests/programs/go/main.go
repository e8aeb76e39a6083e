// sarama, by the rules of program.py: jobs come in as lines, answers go out as JSON.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

type given map[string]string
type answer map[string]any

// What this program was started with; `version` is how new a broker sarama takes ours for.
var (
	bootstrap []string
	settings  given
	shared    sarama.ClusterAdmin
)

func main() {
	bootstrap, settings = strings.Split(os.Args[1], ","), pairs(os.Args[2:])
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := input.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		told, err := act(words[0], pairs(words[1:]))
		if err != nil {
			told = answer{"error": err.Error()}
		}
		if told == nil {
			told = answer{}
		}
		text, _ := json.Marshal(told)
		fmt.Println(string(text))
	}
}

func pairs(words []string) given {
	found := given{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		found[name] = value
	}
	return found
}

func (g given) or(name, otherwise string) string {
	if value, ok := g[name]; ok {
		return value
	}
	return otherwise
}

func (g given) partition() int32 { return int32(number(g.or("partition", "0"))) }

func number(word string) int64 {
	value, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func act(verb string, g given) (answer, error) {
	switch verb {
	case "version":
		return answer{"version": version()}, nil
	case "produce":
		return produce(g)
	case "consume":
		return consume(g)
	case "position":
		return position(g)
	case "transact":
		return nil, transact(g)
	case "join":
		return nil, join(g)
	case "poll":
		return poll(g), nil
	case "commit":
		return nil, commit()
	case "leave":
		return nil, leave()
	}
	return administer(verb, g)
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == "github.com/IBM/sarama" {
			return strings.TrimPrefix(each.Version, "v")
		}
	}
	return "unknown"
}

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	if asked, ok := settings["version"]; ok {
		parsed, err := sarama.ParseKafkaVersion(asked)
		if err != nil {
			panic(err)
		}
		c.Version = parsed
	}
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.MaxMessageBytes = 20 << 20
	c.Consumer.Return.Errors = true
	c.Consumer.MaxWaitTime = 200 * time.Millisecond
	return c
}

// -- writing and reading ---------------------------------------------------------------------------

func produce(g given) (answer, error) {
	c := config()
	c.Producer.RequiredAcks = map[string]sarama.RequiredAcks{
		"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll,
	}[g.or("acks", "all")]
	c.Producer.Compression = map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}[g.or("codec", "none")]
	if g["idempotent"] == "true" {
		c.Producer.Idempotent = true
		c.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer(bootstrap, c)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	wishes := messages(g)
	if err := producer.SendMessages(wishes); err != nil {
		return nil, err
	}
	offsets := []int64{}
	for _, each := range wishes {
		offsets = append(offsets, each.Offset)
	}
	return answer{"offsets": offsets}, nil
}

func messages(g given) []*sarama.ProducerMessage {
	found := []*sarama.ProducerMessage{}
	for index, record := range strings.Split(g["records"], ";") {
		words := strings.Split(record, ",")
		each := &sarama.ProducerMessage{Topic: g["topic"], Partition: g.partition(), Key: encoder(words[0]), Value: encoder(words[1])}
		for i := 2; i < len(words); i += 2 {
			header := sarama.RecordHeader{Key: bytes(words[i]), Value: bytes(words[i+1])}
			each.Headers = append(each.Headers, header)
		}
		if first, ok := g["timestamp"]; ok {
			each.Timestamp = time.UnixMilli(number(first) + 1000*int64(index))
		}
		found = append(found, each)
	}
	return found
}

func bytes(word string) []byte {
	if word == "-" {
		return nil
	}
	data, err := hex.DecodeString(word)
	if err != nil {
		panic(err)
	}
	return data
}

func encoder(word string) sarama.Encoder {
	if word == "-" {
		return nil
	}
	return sarama.ByteEncoder(bytes(word))
}

func hexed(data []byte) any {
	if data == nil {
		return nil
	}
	return hex.EncodeToString(data)
}

func told(each *sarama.ConsumerMessage) answer {
	headers := [][2]any{}
	for _, header := range each.Headers {
		headers = append(headers, [2]any{string(header.Key), hexed(header.Value)})
	}
	return answer{
		"offset": each.Offset, "timestamp": each.Timestamp.UnixMilli(),
		"key": hexed(each.Key), "value": hexed(each.Value), "headers": headers,
	}
}

func consume(g given) (answer, error) {
	c := config()
	c.Consumer.Fetch.Default = 20 << 20
	if g["isolation"] == "read_committed" {
		c.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer(bootstrap, c)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(g["topic"], g.partition(), number(g.or("start", "0")))
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	found := []answer{}
	deadline := time.After(15 * time.Second)
	for int64(len(found)) < number(g["count"]) {
		select {
		case each := <-partition.Messages():
			found = append(found, told(each))
		case problem := <-partition.Errors():
			return nil, problem
		case <-deadline:
			return answer{"records": found}, nil
		}
	}
	return answer{"records": found}, nil
}

func position(g given) (answer, error) {
	client, err := sarama.NewClient(bootstrap, config())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var at int64
	switch g["at"] {
	case "earliest":
		at = sarama.OffsetOldest
	case "latest":
		at = sarama.OffsetNewest
	default:
		at = number(g["at"])
	}
	offset, err := client.GetOffset(g["topic"], g.partition(), at)
	return answer{"position": offset}, err
}

func transact(g given) error {
	c := config()
	c.Producer.Idempotent = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Transaction.ID = g["name"]
	c.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(bootstrap, c)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.BeginTxn(); err != nil {
		return err
	}
	if err := producer.SendMessages(messages(g)); err != nil {
		return err
	}
	if g["end"] == "commit" {
		return producer.CommitTxn()
	}
	return producer.AbortTxn()
}
