package tfevents

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"
)

// The metadata is what tensorboard.plugins.hparams makes of the same parameters; the rest was assembled by hand. The
// parameters lie in the order in which they are given.
func TestParamsByHand(t *testing.T) {
	at := time.Unix(1, 500_000_000)
	message := func(write func(w *Writer) error) string {
		var b bytes.Buffer
		w, err := New(&b, at, 0)
		if err != nil {
			t.Fatal(err)
		}
		b.Reset()
		if err := write(w); err != nil {
			t.Fatal(err)
		}
		frame := b.Bytes()
		return hex.EncodeToString(frame[12 : len(frame)-4])
	}
	const wall = "09000000000000f83f" // wall_time 1.5
	for name, c := range map[string]struct {
		write func(w *Writer) error
		want  string
	}{
		"start": {
			func(w *Writer) error { return w.Params(at, []Param{{"s", "x"}, {"lr", .5}, {"b", true}}) },
			wall + "2a66" + "0a64" + // summary of one value
				"0a1c" + hex.EncodeToString([]byte("_hparams_/session_start_info")) +
				"4206" + "080112021200" + // tensor: floats, of shape [0]
				"4a3c" + "0a3a" + "0a0768706172616d73" + "122f" + "1a2d" + // metadata: the plug-in "hparams", session_start_info
				"0a080a017312031a0178" + "0a0f0a026c72120911000000000000e03f" + "0a070a016212022001" +
				"29000000000000f83f",
		},
		"end": {
			func(w *Writer) error { return w.Ended(at) },
			wall + "2a42" + "0a40" +
				"0a1a" + hex.EncodeToString([]byte("_hparams_/session_end_info")) +
				"4206" + "080112021200" +
				"4a1a" + "0a18" + "0a0768706172616d73" + "120d" + "220b" + "0801" + "11000000000000f83f",
		},
	} {
		if got := message(c.write); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

func TestParamsOfAnotherTypePanic(t *testing.T) {
	w, err := New(new(bytes.Buffer), time.Unix(1, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("an int was taken")
		}
	}()
	_ = w.Params(time.Unix(1, 0), []Param{{"a", 1}})
}
