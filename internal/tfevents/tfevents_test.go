package tfevents

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"time"
)

// Appendix B.4 of RFC 3720 gives the CRC-32C of 32 bytes of zeros and of ones.
func TestChecksumIsCastagnolis(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want uint32
	}{
		{make([]byte, 32), 0x8a9136aa}, {bytes.Repeat([]byte{0xff}, 32), 0x62a8ab43},
	} {
		if got := crc32.Checksum(c.data, castagnoli); got != c.want {
			t.Errorf("CRC-32C of %x is %x, want %x", c.data, got, c.want)
		}
		// Rotated right by 15 bits, plus TFRecord's constant.
		if got, want := masked(c.data), uint32(uint64(c.want>>15|c.want<<17)+0xa282ead8); got != want {
			t.Errorf("masked: %x, want %x", got, want)
		}
	}
}

// The bytes were assembled by hand from the protobuf messages; their checksums were computed with a bit-by-bit CRC.
// Wall time is 1700000000.5, whose float64 is 41d954fc40200000.
const (
	golden = "1800000000000000a37f4b22" + // length 24 and its checksum
		"0900002040fc54d941" + // wall_time
		"1a0d627261696e2e4576656e743a32" + // file_version "brain.Event:2"
		"2b353110"
	restarted = "100000000000000095fbfe18" +
		"0900002040fc54d941" +
		"10ad02" + // step 301
		"3a020801" + // session_log {status: START}
		"596f3f79"
	scalars = "2400000000000000422b804d" +
		"0900002040fc54d941" +
		"10ac02" + // step 300
		"2a16" + // summary of 22 bytes: two values
		"0a080a016115" + "0000c03f" + // "a": 1.5
		"0a0a0a03622f6315" + "000000c0" + // "b/c": -2
		"341a0fc2"
)

func TestFramesByHand(t *testing.T) {
	at := time.Unix(1700000000, 500_000_000)
	for _, c := range []struct {
		purge int64
		want  string
	}{{0, golden + scalars}, {301, golden + restarted + scalars}} {
		var b bytes.Buffer
		w, err := New(&b, at, c.purge)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(at, 300, Scalar{"a", 1.5}, Scalar{"b/c", -2}); err != nil {
			t.Fatal(err)
		}
		if got, want := hex.EncodeToString(b.Bytes()), c.want; got != want {
			t.Errorf("purge %d:\n%s, want\n%s", c.purge, got, want)
		}
	}
}

// A text under a tag, assembled by hand except for its checksums.
func TestTextByHand(t *testing.T) {
	at := time.Unix(1700000000, 500_000_000)
	var b bytes.Buffer
	w, err := New(&b, at, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := w.Text(at, 300, "n", "no"); err != nil {
		t.Fatal(err)
	}
	want := "0900002040fc54d941" + // wall_time
		"10ac02" + // step 300
		"2a1d" + "0a1b" + // summary of one value
		"0a016e" + // tag "n"
		"420c" + "0807" + "120412020801" + "42026e6f" + // tensor: strings, of shape [1], "no"
		"4a08" + "0a06" + "0a0474657874" // metadata: the plug-in "text"
	frame := b.Bytes()
	if got := hex.EncodeToString(frame[12 : len(frame)-4]); got != want {
		t.Errorf("message\n%s, want\n%s", got, want)
	}
	if n := binary.LittleEndian.Uint64(frame); n != uint64(len(want)/2) ||
		binary.LittleEndian.Uint32(frame[len(frame)-4:]) != masked(frame[12:len(frame)-4]) {
		t.Errorf("length %d, want %d, or the checksum is wrong", n, len(want)/2)
	}
}

// broken is a writer that fails after a number of writes.
type broken int

func (b *broken) Write(p []byte) (int, error) {
	if *b--; *b < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestErrorsOfTheFileAreTold(t *testing.T) {
	for n := range broken(2) {
		w := n
		if _, err := New(&w, time.Unix(1, 0), 5); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("New after %d writes: %v", n, err)
		}
	}
	n := broken(1)
	w, err := New(&n, time.Unix(1, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(time.Unix(1, 0), 1, Scalar{"a", 1}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Write: %v", err)
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	w, err := New(io.Discard, time.Unix(1, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	s := []Scalar{{"rollout/ep_rew_mean", 1}, {"time/fps", 2}}
	if n := testing.AllocsPerRun(100, func() { _ = w.Write(time.Unix(2, 0), 7, s...) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
