// The Go client, played in named scenarios against a cluster.
//
// Arguments: the name server, then scenarios. Each has a topic of its own, which must be there, with
// the name of the scenario. Prints a JSON line per scenario: its name, whether it passed, its seconds,
// what it saw, and the failure's text.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

// scenarios are functions that return what failed.
var scenarios = map[string]func(*world) error{
	"go_sync_send":    syncSend,
	"go_push_consume": pushConsume,
	"go_tag_filter":   tagFilter,
	"go_ordered":      ordered,
	"go_delay":        delay,
	"go_retry":        retry,
	"go_transaction":  transaction,
}

type result struct {
	Scenario string                 `json:"scenario"`
	Passed   bool                   `json:"passed"`
	Seconds  float64                `json:"seconds"`
	Saw      map[string]interface{} `json:"saw"`
	Failure  string                 `json:"failure"`
}

func main() {
	rlog.SetLogLevel("error")
	var running sync.WaitGroup
	var printing sync.Mutex
	for _, name := range os.Args[2:] {
		running.Add(1)
		go func(name string) {
			defer running.Done()
			line, _ := json.Marshal(play(os.Args[1], name))
			printing.Lock()
			defer printing.Unlock()
			fmt.Println(string(line))
		}(name)
	}
	running.Wait()
}

func play(namesrv string, name string) (played result) {
	started := time.Now()
	world := &world{namesrv: namesrv, topic: name, saw: map[string]interface{}{}}
	played = result{Scenario: name, Saw: world.saw}
	defer func() {
		if panicked := recover(); panicked != nil {
			played.Failure = fmt.Sprint("panic: ", panicked)
		}
		played.Passed = played.Failure == ""
		played.Seconds = time.Since(started).Seconds()
		world.close()
	}()
	scenario, known := scenarios[name]
	if !known {
		played.Failure = "there is no such scenario"
	} else if err := scenario(world); err != nil {
		played.Failure = err.Error()
	}
	return played
}
