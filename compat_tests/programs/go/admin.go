package main

import (
	"fmt"
	"sort"

	"github.com/IBM/sarama"
)

func administer(verb string, g given) (answer, error) {
	if shared == nil {
		admin, err := sarama.NewClusterAdmin(bootstrap, config())
		if err != nil {
			return nil, err
		}
		shared = admin
	}
	topic, group := g["topic"], g["group"]
	switch verb {
	case "create":
		detail := &sarama.TopicDetail{NumPartitions: int32(number(g.or("partitions", "1"))), ReplicationFactor: 1, ConfigEntries: map[string]*string{}}
		for name, value := range g {
			if name != "topic" && name != "partitions" {
				detail.ConfigEntries[name] = &value
			}
		}
		return nil, shared.CreateTopic(topic, detail, false)
	case "delete":
		return nil, shared.DeleteTopic(topic)
	case "grow":
		return nil, shared.CreatePartitions(topic, int32(number(g["partitions"])), nil, false)
	case "topics":
		found, err := shared.ListTopics()
		return answer{"topics": sorted(found)}, err
	case "describe":
		found, err := shared.DescribeTopics([]string{topic})
		if err != nil {
			return nil, err
		}
		partitions := []int32{}
		for _, each := range found[0].Partitions {
			partitions = append(partitions, each.ID)
		}
		sort.Slice(partitions, func(i, j int) bool { return partitions[i] < partitions[j] })
		return answer{"partitions": partitions}, nil
	case "configs":
		resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{g["name"]}}
		found, err := shared.DescribeConfig(resource)
		if err != nil {
			return nil, err
		}
		return answer{"value": found[0].Value}, nil
	case "alter":
		value := g["value"]
		if config().Version.IsAtLeast(sarama.V2_3_0_0) {
			entry := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
			wish := map[string]sarama.IncrementalAlterConfigsEntry{g["name"]: entry}
			return nil, shared.IncrementalAlterConfig(sarama.TopicResource, topic, wish, false)
		}
		return nil, shared.AlterConfig(sarama.TopicResource, topic, map[string]*string{g["name"]: &value}, false)
	case "groups":
		found, err := shared.ListConsumerGroups()
		return answer{"groups": sorted(found)}, err
	case "describe-group":
		found, err := shared.DescribeConsumerGroups([]string{group})
		if err != nil {
			return nil, err
		}
		return answer{"state": found[0].State, "members": len(found[0].Members)}, nil
	case "group-offsets":
		return groupOffsets(g)
	case "delete-group":
		return nil, shared.DeleteConsumerGroup(group)
	case "delete-records":
		err := shared.DeleteRecords(topic, map[int32]int64{g.partition(): number(g["offset"])})
		if err != nil {
			return nil, err
		}
		// It does not tell: we look.
		low, err := position(given{"topic": topic, "at": "earliest", "partition": fmt.Sprint(g.partition())})
		return answer{"low_watermark": low["position"]}, err
	}
	return nil, fmt.Errorf("no such job: %s", verb)
}

func groupOffsets(g given) (answer, error) {
	described, err := administer("describe", g)
	if err != nil {
		return nil, err
	}
	found, err := shared.ListConsumerGroupOffsets(g["group"], map[string][]int32{g["topic"]: described["partitions"].([]int32)})
	if err != nil {
		return nil, err
	}
	offsets := map[string]int64{}
	for partition, block := range found.Blocks[g["topic"]] {
		offsets[fmt.Sprint(partition)] = block.Offset
	}
	return answer{"offsets": offsets}, nil
}

func sorted[V any](found map[string]V) []string {
	names := []string{}
	for name := range found {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
