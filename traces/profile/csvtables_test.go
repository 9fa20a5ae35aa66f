package profile

import (
	"strings"
	"testing"
	"time"
)

func TestElasticFlowByHand(t *testing.T) {
	b := newBuilder()
	if err := b.elasticflow(
		strings.NewReader("global_batch_size,1,2,4\r\n64,4.0,6.0,nan\r\n128,2,3.5,0\r\n256,nan,,5\r\n"), "f", "net",
		"T4"); err != nil {
		t.Fatal(err)
	}
	if err := b.elasticflow(strings.NewReader("1,global_batch_size\n16,64\n"), "f", "net", "A100"); err != nil {
		t.Fatal(err)
	}
	e := b.table()
	for _, c := range []struct {
		model, gpu string
		gpus       int
		want       float64
	}{
		{"net (batch size 64)", "T4", 1, 4}, {"net (batch size 64)", "T4", 2, 6}, {"net (batch size 64)", "T4", 4, 0},
		{"net (batch size 256)", "T4", 4, 5}, {"net (batch size 256)", "T4", 2, 0}, {"net (batch size 64)", "A100", 1, 16},
		{"net", "T4", 1, 4}, {"net", "T4", 4, 5}, // the smallest batch size measured there
	} {
		if got, ok := e.Throughput(c.model, c.gpu, c.gpus); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s on %d %s: %v, %v; want %v", c.model, c.gpus, c.gpu, got, ok, c.want)
		}
	}
	if p, _ := e.Profile("net", "T4"); p.Speeds["A100"] != 4 || p.Compute != 250*time.Millisecond {
		t.Errorf("%+v", p)
	}
	for text, want := range map[string]string{
		"global_batch_size,1,x\n":         `f:1: got "x", want a number of GPUs from 1 to 1048576 in the header, each once`,
		"global_batch_size,1,01\n":        `f:1: got "01", want a number of GPUs from 1 to 1048576 in the header, each once`,
		"1,2\n":                           `f:1: got "1,2", want a header with also global_batch_size`,
		"":                                `f:1: got "", want a header with global_batch_size`,
		"global_batch_size,1\n0,3\n":      `f:2: global_batch_size: got "0", want a whole number from 1 to 1099511627776`,
		"global_batch_size,1\n8,inf\n":    `f:2: 1: got "inf", want 0 or a number from 1e-15 to 1e15, or nan where nothing was measured`,
		"global_batch_size,1\n8,0x1\n":    `f:2: 1: got "0x1", want 0 or a number from 1e-15 to 1e15, or nan where nothing was measured`,
		"global_batch_size,1\n8,1,2\n":    `f:2: got "3 fields", want 2, as in the header`,
		"global_batch_size,1\n8,1\n\n8,1": `f:4: global_batch_size: got "8", want each batch size once for net on T4`,
	} {
		if err := newBuilder().elasticflow(strings.NewReader(text), "f", "net", "T4"); err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
}

const pairsHeader = ",model1,dataset1,gpu_num1,batchsize1,amp1,speed1,model2,dataset2,gpu_num2,batchsize2,amp2,speed2,gpu_util\n"

func TestLucidByHand(t *testing.T) {
	b := newBuilder()
	if err := b.lucidPairs(strings.NewReader(pairsHeader+
		"0,A,D,1,32,0,0.9,B,E,1,64,1,1.05,50\n"+
		"1,B,E,1,64,1,0.75,A,D,1,32,0,0.7,50\n"+
		"2,A,D,1,64,0,0.5,A,D,1,64,0,0.7,50\n"), "f"); err != nil {
		t.Fatal(err)
	}
	if err := b.lucidAlone(
		strings.NewReader("model,dataset,batchsize,amp,speed,gpu_util,gmem_util,gmem,label\nA,D,32,0,320,1,1,2048.5,2\n"),
		"g"); err != nil {
		t.Fatal(err)
	}
	l := b.table()
	if got, want := strings.Join(l.Models(), "; "),
		"A (D, batch size 32); A (D, batch size 64); B (E, batch size 64, amp)"; got != want {
		t.Errorf("models %s, want %s", got, want)
	}
	for _, c := range []struct {
		victim, other string
		want          float64
	}{
		{"A (D, batch size 32)", "B (E, batch size 64, amp)", .8}, // the mean of 0.9 and 0.7
		{"B", "A (D, batch size 32)", .9},                         // 1.05 and 0.75
		{"A (D, batch size 64)", "A (D, batch size 64)", .6},      // both sides of one row
		{"B", "B", 0},
	} {
		if got, ok := l.Kept(c.victim, c.other); !near(got, c.want) || ok != (c.want > 0) {
			t.Errorf("%s beside %s keeps %v, %v; want %v", c.victim, c.other, got, ok, c.want)
		}
	}
	p, ok := l.Profile("A (D, batch size 32)", "")
	if !ok || p.Compute != 100*time.Millisecond || p.MemBytes != 4097<<19 || p.Speeds != nil {
		t.Errorf("%+v, %v", p, ok)
	}
	for row, want := range map[string]string{
		"0,A,D,2,32,0,0.9,B,E,1,64,1,1.05,50":  `f:2: gpu_num1: got "2", want 1: the pairs share one GPU`,
		"0,A,D,1,32,0,-1,B,E,1,64,1,1.05,50":   `f:2: speed1: got "-1", want 0 or a number from 1e-15 to 1e15`,
		"0,A,D,1,32,0,1,,E,1,64,1,1.05,50":     `f:2: model2: got "", want a name`,
		"0,A,D,1,32,2,1,B,E,1,64,1,1.05,50":    `f:2: amp1: got "2", want 0 or 1`,
		"0,A,D,1,x,0,1,B,E,1,64,1,1.05,50":     `f:2: batchsize1: got "x", want a whole number from 1 to 1099511627776`,
		"0,A,\"D,1,32,0,1,B,E,1,64,1,1.05,50":  `f:2: got "\"D,1,32,0,1,B,E,1,64,1,1.05,50", want a closing quote in the same line`,
		"0,A,D,1,32,0,1,B,E,1,64,1,1.05,50,51": `f:2: got "15 fields", want 14, as in the header`,
	} {
		if err := newBuilder().lucidPairs(strings.NewReader(pairsHeader+row), "f"); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", row, err, want)
		}
	}
}

func TestTiresiasByHand(t *testing.T) {
	b := newBuilder()
	if err := b.tiresias(
		strings.NewReader("tensor_size_mb,model_name,tensor_index\n1.5,wide,0\n0.25,flat,0\n2.0,wide,1\n0.25,flat,1\n"),
		"f"); err != nil {
		t.Fatal(err)
	}
	s := b.table()
	if p, ok := s.Profile("wide", "v100"); !ok || p.GradientBytes != 7<<19 || !p.Skewed {
		t.Errorf("%+v", p)
	}
	if p, ok := s.Profile("flat", ""); !ok || p.GradientBytes != 1<<19 || p.Skewed { // exactly half is not more
		t.Errorf("%+v", p)
	}
	err := newBuilder().tiresias(strings.NewReader("model_name,tensor_index,tensor_size_mb\n,0,1\n"), "f")
	if err == nil || err.Error() != `f:2: model_name: got "", want a name` {
		t.Error(err)
	}
}
