package main

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// A member of a group.  Messages come by themselves, and wait here for somebody to poll.
type member struct {
	group  sarama.ConsumerGroup
	cancel context.CancelFunc
	done   chan struct{}

	mutex      sync.Mutex
	session    sarama.ConsumerGroupSession // nil between two generations
	assignment []int32
	waiting    []*sarama.ConsumerMessage
	read       []*sarama.ConsumerMessage
}

var us *member

func join(g given) error {
	c := config()
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	group, err := sarama.NewConsumerGroup(bootstrap, g["group"], c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	us = &member{group: group, cancel: cancel, done: make(chan struct{})}
	go func() {
		for range group.Errors() {
		}
	}()
	go func() {
		defer close(us.done)
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{g["topic"]}, us); err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return nil
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session, m.assignment = session, nil
	for _, partitions := range session.Claims() {
		m.assignment = append(m.assignment, partitions...)
	}
	sort.Slice(m.assignment, func(i, j int) bool { return m.assignment[i] < m.assignment[j] })
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.session, m.assignment, m.waiting, m.read = nil, nil, nil, nil
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.mutex.Lock()
			m.waiting = append(m.waiting, message)
			m.mutex.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) take() (assignment []int32, values []any) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	assignment, values = append([]int32{}, m.assignment...), []any{}
	for _, each := range m.waiting {
		values = append(values, hexed(each.Value))
	}
	m.read, m.waiting = append(m.read, m.waiting...), nil
	return assignment, values
}

func poll(g given) answer {
	seconds, _ := time.ParseDuration(g["seconds"] + "s")
	deadline := time.Now().Add(seconds)
	for {
		assignment, values := us.take()
		if len(values) > 0 || time.Now().After(deadline) {
			return answer{"assignment": assignment, "values": values}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func commit() error {
	us.mutex.Lock()
	defer us.mutex.Unlock()
	for _, each := range us.read {
		us.session.MarkMessage(each, "")
	}
	us.session.Commit()
	return nil
}

func leave() error {
	us.cancel()
	<-us.done
	return us.group.Close()
}
