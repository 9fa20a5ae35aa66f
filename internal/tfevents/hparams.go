package tfevents

import (
	"encoding/binary"
	"math"
	"time"
)

// The tags by which TensorBoard's hparams plug-in finds a session, which is a run.
const (
	sessionStart = "_hparams_/session_start_info"
	sessionEnd   = "_hparams_/session_end_info"
)

// nothing is a TensorProto without values: dtype = 1 is DT_FLOAT = 1, tensor_shape = 2 has one dim = 2 of size 0.
var nothing = []byte{1<<3 | 0, 1, 2<<3 | 2, 2, 2<<3 | 2, 0}

// Param is a hyper-parameter. Its value is a float64, a bool or a string.
type Param struct {
	Name  string
	Value any
}

// Params records the hyper-parameters of a run, once at its beginning. TensorBoard shows them beside the run's scalars.
func (t *Writer) Params(now time.Time, params []Param) error {
	// HParamsPluginData.session_start_info = 3: hparams = 1, a map from key = 1 to google.protobuf.Value = 2, and
	// start_time_secs = 5.
	var info []byte
	for _, p := range params {
		var v []byte
		switch x := p.Value.(type) {
		case float64: // number_value = 2
			v = binary.LittleEndian.AppendUint64([]byte{2<<3 | 1}, math.Float64bits(x))
		case bool: // bool_value = 4
			v = []byte{4<<3 | 0, 0}
			if x {
				v[1] = 1
			}
		case string: // string_value = 3
			v = appendBytes(nil, 3, x)
		default:
			panic("tfevents: a hyper-parameter is a float64, a bool or a string")
		}
		info = appendBytes(info, 1, appendBytes(appendBytes(nil, 1, p.Name), 2, v))
	}
	info = appendSeconds(info, 5, now)
	return t.session(now, sessionStart, appendBytes(nil, 3, info))
}

// Ended records that the run has come to its end.
func (t *Writer) Ended(now time.Time) error {
	// HParamsPluginData.session_end_info = 4: status = 1 is STATUS_SUCCESS = 1, end_time_secs = 2.
	return t.session(now, sessionEnd, appendBytes(nil, 4, appendSeconds([]byte{1<<3 | 0, 1}, 2, now)))
}

// session records a message of the hparams plug-in. It is in the metadata of a value without content.
func (t *Writer) session(now time.Time, tag string, data []byte) error {
	t.event(now, 0)
	// Value.tag = 1, tensor = 8, metadata = 9: SummaryMetadata.plugin_data = 1 with plugin_name = 1 and content = 2.
	t.value = appendBytes(appendBytes(t.value[:0], 1, tag), 8, nothing)
	t.value = appendBytes(t.value, 9, appendBytes(nil, 1, appendBytes(appendBytes(nil, 1, "hparams"), 2, data)))
	t.msg = appendBytes(t.msg, 5, appendBytes(nil, 1, t.value))
	return t.frame()
}

// appendSeconds appends a time as a double of seconds since 1970.
func appendSeconds(dst []byte, field byte, now time.Time) []byte {
	dst = append(dst, field<<3|1)
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(float64(now.UnixNano())/1e9))
}
