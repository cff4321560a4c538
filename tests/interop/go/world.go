package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	deadline    = 100 * time.Second
	sendTimeout = 20 * time.Second
)

// world is what one scenario works with: names, clients that end with it, what it saw.
type world struct {
	namesrv string
	topic   string
	saw     map[string]interface{}
	endings []func() error
	clients int
}

func (w *world) close() {
	for _, end := range w.endings {
		_ = end()
	}
}

// instance returns a name that no other client has: each has connections of its own.
func (w *world) instance() string {
	w.clients++
	return fmt.Sprintf("%s-%d", w.topic, w.clients)
}

func (w *world) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{w.namesrv})
}

func (w *world) producerOptions(more ...producer.Option) []producer.Option {
	return append([]producer.Option{
		producer.WithNsResolver(w.resolver()),
		producer.WithGroupName(w.topic + "-producers"),
		producer.WithInstanceName(w.instance()),
		producer.WithSendMsgTimeout(sendTimeout),
	}, more...)
}

func (w *world) producer(more ...producer.Option) (rocketmq.Producer, error) {
	made, err := rocketmq.NewProducer(w.producerOptions(more...)...)
	if err != nil {
		return nil, err
	}
	w.endings = append(w.endings, made.Shutdown)
	return made, made.Start()
}

type listener func(context.Context, *primitive.MessageExt) consumer.ConsumeResult

// consumer starts one that gets its messages one by one, from the topic's first one on.
func (w *world) consumer(tags string, listen listener, more ...consumer.Option) (rocketmq.PushConsumer, error) {
	made, err := rocketmq.NewPushConsumer(append([]consumer.Option{
		consumer.WithNsResolver(w.resolver()),
		consumer.WithGroupName(w.topic + "-group"),
		consumer.WithInstance(w.instance()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeMessageBatchMaxSize(1),
	}, more...)...)
	if err != nil {
		return nil, err
	}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	each := func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			if result := listen(ctx, message); result != consumer.ConsumeSuccess {
				return result, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	if err := made.Subscribe(w.topic, selector, each); err != nil {
		return nil, err
	}
	w.endings = append(w.endings, made.Shutdown)
	return made, made.Start()
}

func (w *world) message(format string, values ...interface{}) *primitive.Message {
	return primitive.NewMessage(w.topic, []byte(fmt.Sprintf(format, values...)))
}

func send(p rocketmq.Producer, messages ...*primitive.Message) (*primitive.SendResult, error) {
	sent, err := p.SendSync(context.Background(), messages...)
	if err == nil && sent.Status != primitive.SendOK {
		err = fmt.Errorf("status of a send: %d", sent.Status)
	}
	return sent, err
}

// inbox is what consumers got: several of them may write at a time.
type inbox struct {
	mutex    sync.Mutex
	messages []*primitive.MessageExt
	times    []time.Time
}

func (i *inbox) listen(_ context.Context, message *primitive.MessageExt) consumer.ConsumeResult {
	i.put(message)
	return consumer.ConsumeSuccess
}

func (i *inbox) put(message *primitive.MessageExt) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.messages = append(i.messages, message)
	i.times = append(i.times, time.Now())
}

func (i *inbox) texts() []string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	texts := make([]string, len(i.messages))
	for n, message := range i.messages {
		texts[n] = string(message.Body)
	}
	return texts
}

// holds waits until there are so many messages, and returns their texts, in order of the alphabet.
func (i *inbox) holds(count int) ([]string, error) {
	err := until(fmt.Sprintf("%d messages came", count), func() bool { return len(i.texts()) >= count })
	texts := i.texts()
	sort.Strings(texts)
	if err != nil {
		err = fmt.Errorf("%w; only %v", err, texts)
	}
	return texts, err
}

func until(what string, holds func() bool) error {
	for end := time.Now().Add(deadline); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("waited in vain until %s", what)
		}
	}
	return nil
}

func equal(what string, expected, actual interface{}) error {
	if fmt.Sprint(expected) != fmt.Sprint(actual) {
		return fmt.Errorf("%s: expected %v, was %v", what, expected, actual)
	}
	return nil
}
