package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// decisions says of each text what becomes of its message: at once, or when the broker asks.
type decisions struct {
	mutex sync.Mutex
	asked map[string]int
}

func (d *decisions) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	return state(strings.SplitN(string(message.Body), "-", 2)[0])
}

func (d *decisions) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.asked[string(message.Body)]++
	return state(strings.SplitN(string(message.Body), "-", 2)[1])
}

func (d *decisions) texts() []string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var texts []string
	for text := range d.asked {
		texts = append(texts, text)
	}
	sort.Strings(texts)
	return texts
}

func state(word string) primitive.LocalTransactionState {
	switch word {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnknowState
}

// transaction ends two at once, and leaves two to the broker's question.
func transaction(w *world) error {
	got := &inbox{}
	if _, err := w.consumer("*", got.listen); err != nil {
		return err
	}
	listener := &decisions{asked: map[string]int{}}
	p, err := rocketmq.NewTransactionProducer(listener, w.producerOptions()...)
	if err != nil {
		return err
	}
	w.endings = append(w.endings, p.Shutdown)
	if err := p.Start(); err != nil {
		return err
	}
	for _, text := range []string{"rollback-never", "commit-never", "open-rollback", "open-commit"} {
		sent, err := p.SendMessageInTransaction(context.Background(), w.message("%s", text))
		if err != nil {
			return err
		}
		if sent.Status != primitive.SendOK {
			return fmt.Errorf("status of %s: %d", text, sent.Status)
		}
	}
	open := []string{"open-commit", "open-rollback"}
	if err := until("both were asked for", func() bool { return len(listener.texts()) >= 2 }); err != nil {
		return fmt.Errorf("%w; only %v", err, listener.texts())
	}
	if _, err := got.holds(2); err != nil {
		return err
	}
	time.Sleep(1500 * time.Millisecond) // what was rolled back would come now
	texts := map[string]bool{}
	for _, text := range got.texts() {
		texts[text] = true
	}
	w.saw["received"], w.saw["asked"] = got.texts(), listener.asked
	if err := equal("asked", open, listener.texts()); err != nil {
		return err
	}
	return equal("received", map[string]bool{"commit-never": true, "open-commit": true}, texts)
}
