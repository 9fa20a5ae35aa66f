// Package tfevents writes TensorBoard's event files: TFRecord frames around Event messages with scalar and text
// summaries. It encodes the few protobuf fields by hand: TensorFlow's event.proto, summary.proto and tensor.proto name
// them, and they have not changed for years.
package tfevents

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// Writer appends events to one file. Not safe for concurrent use.
type Writer struct {
	w io.Writer
	// Scratch for a frame, its message, the message's summary and one value of the summary.
	buf, msg, summary, value []byte
}

// Scalar is one number under a tag such as "rollout/ep_rew_mean".
type Scalar struct {
	Tag   string
	Value float64
}

// New begins an event file on w. A resumed run passes its step as purge, so that TensorBoard discards what earlier
// files have for that step and later ones (SessionLog START). A new run passes 0.
func New(w io.Writer, now time.Time, purge int64) (*Writer, error) {
	t := &Writer{w: w}
	// Event.file_version = 3.
	t.event(now, 0)
	t.msg = appendBytes(t.msg, 3, "brain.Event:2")
	if err := t.frame(); err != nil {
		return nil, err
	}
	if purge > 0 {
		// Event.session_log = 7, SessionLog.status = 1, START = 1.
		t.event(now, purge)
		t.msg = appendBytes(t.msg, 7, []byte{1<<3 | 0, 1})
		if err := t.frame(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Write records scalars at step.
func (t *Writer) Write(now time.Time, step int64, scalars ...Scalar) error {
	t.event(now, step)
	// Event.summary = 5, Summary.value = 1, Value.tag = 1 and simple_value = 2 (float).
	t.summary = t.summary[:0]
	for _, s := range scalars {
		t.value = appendBytes(t.value[:0], 1, s.Tag)
		t.value = append(t.value, 2<<3|5)
		t.value = binary.LittleEndian.AppendUint32(t.value, math.Float32bits(float32(s.Value)))
		t.summary = appendBytes(t.summary, 1, t.value)
	}
	t.msg = appendBytes(t.msg, 5, t.summary)
	return t.frame()
}

// Text records a text under a tag at step.
func (t *Writer) Text(now time.Time, step int64, tag, text string) error {
	t.event(now, step)
	// Value.tensor = 8: TensorProto.dtype = 1 is DT_STRING = 7, its tensor_shape = 2 of one dim = 2 of size = 1, and
	// string_val = 8 the text. Value.metadata = 9: SummaryMetadata.plugin_data = 1 with plugin_name = 1.
	tensor := appendBytes([]byte{1<<3 | 0, 7, 2<<3 | 2, 4, 2<<3 | 2, 2, 1<<3 | 0, 1}, 8, text)
	t.value = appendBytes(appendBytes(t.value[:0], 1, tag), 8, tensor)
	t.value = appendBytes(t.value, 9, appendBytes(nil, 1, appendBytes(nil, 1, "text")))
	t.msg = appendBytes(t.msg, 5, appendBytes(nil, 1, t.value))
	return t.frame()
}

// event begins a message: wall_time = 1 (double), step = 2 (varint).
func (t *Writer) event(now time.Time, step int64) {
	t.msg = appendSeconds(t.msg[:0], 1, now)
	if step != 0 {
		t.msg = append(t.msg, 2<<3)
		t.msg = binary.AppendUvarint(t.msg, uint64(step))
	}
}

func appendBytes[T string | []byte](dst []byte, field byte, b T) []byte {
	dst = append(dst, field<<3|2)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// frame writes the message as a TFRecord: length, its masked CRC-32C, data, its masked CRC-32C.
func (t *Writer) frame() error {
	t.buf = binary.LittleEndian.AppendUint64(t.buf[:0], uint64(len(t.msg)))
	t.buf = binary.LittleEndian.AppendUint32(t.buf, masked(t.buf))
	t.buf = append(t.buf, t.msg...)
	t.buf = binary.LittleEndian.AppendUint32(t.buf, masked(t.msg))
	_, err := t.w.Write(t.buf)
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns TFRecord's checksum. A CRC of data that itself contains CRCs is weak, so it is rotated and offset.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
