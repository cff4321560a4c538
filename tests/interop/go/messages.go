package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// syncSend sends single messages, a batch and a body that is compressed, and gets them as they were.
func syncSend(w *world) error {
	p, err := w.producer(producer.WithCompressMsgBodyOverHowmuch(1000))
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	for n := 0; n < 10; n++ {
		message := w.message("single-%02d", n).WithTag("paid").WithKeys([]string{fmt.Sprint("key-", n)})
		message.WithProperty("colour", "blue")
		sent, err := send(p, message)
		if err != nil {
			return err
		}
		ids[sent.MsgID] = true
	}
	if err := equal("different ids", 10, len(ids)); err != nil {
		return err
	}
	var batch []*primitive.Message
	for n := 0; n < 5; n++ {
		batch = append(batch, w.message("batch-%02d", n))
	}
	if _, err := send(p, batch...); err != nil {
		return err
	}
	long := strings.Repeat("long ", 2000)
	if _, err := send(p, w.message("%s", long)); err != nil {
		return err
	}
	got := &inbox{}
	if _, err := w.consumer("*", got.listen); err != nil {
		return err
	}
	texts, err := got.holds(16)
	if err != nil {
		return err
	}
	w.saw["received"] = len(texts)
	for _, message := range got.messages {
		text := string(message.Body)
		if !strings.HasPrefix(text, "single-") {
			continue
		}
		if !ids[message.MsgId] {
			return fmt.Errorf("%s has the id %s, which was not told at its send", text, message.MsgId)
		}
		number := strings.TrimLeft(text[len("single-"):], "0")
		if number == "" {
			number = "0"
		}
		seen := []string{message.GetTags(), message.GetKeys(), message.GetProperty("colour")}
		if err := equal(text, []string{"paid", "key-" + number, "blue"}, seen); err != nil {
			return err
		}
	}
	return equal("texts", append(append(numbered("batch", 5), long), numbered("single", 10)...), texts)
}

func numbered(name string, count int) []string {
	texts := make([]string, count)
	for n := range texts {
		texts[n] = fmt.Sprintf("%s-%02d", name, n)
	}
	return texts
}

// pushConsume lets two consumers of a group share what is sent while both are there.
func pushConsume(w *world) error {
	first, second := &inbox{}, &inbox{}
	for _, each := range []*inbox{first, second} {
		if _, err := w.consumer("*", each.listen); err != nil {
			return err
		}
	}
	p, err := w.producer()
	if err != nil {
		return err
	}
	sent := 0
	// The first consumer hears from the broker that there is a second one.
	err = until("both consumers got messages", func() bool {
		_, err = send(p, w.message("%04d", sent))
		sent++
		return err != nil || len(first.texts()) >= 5 && len(second.texts()) >= 5
	})
	if err != nil {
		return err
	}
	missing := func() int {
		got := map[string]bool{}
		for _, text := range append(first.texts(), second.texts()...) {
			got[text] = true
		}
		return sent - len(got)
	}
	err = until("all came", func() bool { return missing() == 0 })
	w.saw["sent"], w.saw["first"], w.saw["second"] = sent, len(first.texts()), len(second.texts())
	return err
}

func tagFilter(w *world) error {
	p, err := w.producer()
	if err != nil {
		return err
	}
	for n := 0; n < 9; n++ {
		tag := []string{"a", "b", "c"}[n%3]
		if _, err := send(p, w.message("%s-%02d", tag, n/3).WithTag(tag)); err != nil {
			return err
		}
	}
	got := &inbox{}
	if _, err := w.consumer("a || c", got.listen); err != nil {
		return err
	}
	texts, err := got.holds(6)
	if err != nil {
		return err
	}
	return equal("texts", append(numbered("a", 3), numbered("c", 3)...), texts)
}

// ordered sends four sequences; one message fails at first, and its queue waits for it.
func ordered(w *world) error {
	p, err := w.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	if err != nil {
		return err
	}
	got := &inbox{}
	var failure sync.Once
	listen := func(_ context.Context, message *primitive.MessageExt) consumer.ConsumeResult {
		failed := false
		if string(message.Body) == "b-07" {
			failure.Do(func() { failed = true })
		}
		if failed {
			return consumer.SuspendCurrentQueueAMoment
		}
		got.put(message)
		return consumer.ConsumeSuccess
	}
	if _, err := w.consumer("*", listen, consumer.WithConsumerOrder(true)); err != nil {
		return err
	}
	keys := []string{"a", "b", "c", "d"}
	for n := 0; n < 20; n++ {
		for _, key := range keys {
			if _, err := send(p, w.message("%s-%02d", key, n).WithShardingKey(key)); err != nil {
				return err
			}
		}
	}
	if _, err := got.holds(20 * len(keys)); err != nil {
		return err
	}
	sequences := map[string][]string{}
	for _, text := range got.texts() {
		sequences[text[:1]] = append(sequences[text[:1]], text)
	}
	for _, key := range keys {
		if err := equal("sequence", numbered(key, 20), sequences[key]); err != nil {
			return err
		}
	}
	return nil
}

// delay sends messages of levels 1 and 2: after one second, and after five.
func delay(w *world) error {
	p, err := w.producer()
	if err != nil {
		return err
	}
	got := &inbox{}
	if _, err := w.consumer("*", got.listen); err != nil {
		return err
	}
	started := time.Now()
	for _, level := range []int{2, 1, 0} {
		if _, err := send(p, w.message("level-%02d", level).WithDelayTimeLevel(level)); err != nil {
			return err
		}
	}
	texts, err := got.holds(3)
	if err != nil {
		return err
	}
	least := map[string]time.Duration{"level-01": time.Second, "level-02": 5 * time.Second}
	for n, message := range got.messages {
		text, waited := string(message.Body), got.times[n].Sub(started)
		w.saw[text] = waited.Milliseconds()
		if waited < least[text] {
			return fmt.Errorf("%s came after %s", text, waited)
		}
	}
	return equal("texts", numbered("level", 3), texts)
}

// retry fails a message twice, and gets it again with the number of its tries.
func retry(w *world) error {
	got := &inbox{}
	listen := func(ctx context.Context, message *primitive.MessageExt) consumer.ConsumeResult {
		got.put(message)
		if message.ReconsumeTimes >= 2 {
			return consumer.ConsumeSuccess
		}
		if context, ok := primitive.GetConcurrentlyCtx(ctx); ok {
			context.DelayLevelWhenNextConsume = 1
		}
		return consumer.ConsumeRetryLater
	}
	// The first consumer makes the group and its retry topic known, the second then finds its route.
	first, err := w.consumer("*", listen)
	if err != nil {
		return err
	}
	if err := first.Shutdown(); err != nil {
		return err
	}
	if _, err := w.consumer("*", listen); err != nil {
		return err
	}
	p, err := w.producer()
	if err != nil {
		return err
	}
	if _, err := send(p, w.message("again")); err != nil {
		return err
	}
	if _, err := got.holds(3); err != nil {
		return err
	}
	var tries []int
	for _, message := range got.messages {
		tries = append(tries, int(message.ReconsumeTimes))
	}
	sort.Ints(tries)
	return equal("tries", []int{0, 1, 2}, tries)
}
