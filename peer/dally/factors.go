package dally

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Shape is how a gang is spread; it determines the gang's factor. Element 5 counts racks, 4 machines, 3 slots, 0 the
// GPUs of a slot; −1 = not used. If GPUs do not divide evenly at a level, its element has them all and the elements
// below it are not used.
type Shape [6]int

func (s Shape) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = strconv.Itoa(d)
	}
	return strings.Join(parts, "|")
}

// ParseShape parses the output of String.
func ParseShape(text string) (Shape, error) {
	var s Shape
	parts := strings.Split(text, "|")
	for i, p := range parts {
		d, err := strconv.Atoi(p)
		if len(parts) != len(s) || err != nil || d < -1 || d > 1<<20 {
			return s, fmt.Errorf("got %q, want six whole numbers of -1 or more joined by |", text)
		}
		s[i] = d
	}
	return s, nil
}

// shapeOf returns the shape of n GPUs on the given numbers of racks, machines and slots.
func shapeOf(n, racks, machines, slots int) Shape {
	s := Shape{-1, -1, -1, -1, -1, -1}
	if racks > 1 {
		if n%racks != 0 {
			s[5] = n
			return s
		}
		s[5] = racks
		n /= racks
	}
	if machines > 1 {
		if n%machines != 0 || n == machines {
			s[4] = n
			return s
		}
		s[4] = machines
		n /= machines
	}
	if n%slots != 0 || n == slots {
		s[3] = n
		return s
	}
	if slots > 1 {
		s[3] = slots
		n /= slots
	}
	s[0] = n
	return s
}

// Factors computes the share of its speed, above 0 and up to 1, that communication leaves to a job with a gang of the
// given shape. The gang has two or more GPUs.
type Factors interface {
	Factor(j *Job, s Shape) (float64, error)
}

// One is a network on which communication takes no time.
type One struct{}

// Factor implements Factors.
func (One) Factor(*Job, Shape) (float64, error) { return 1, nil }

// Rings is hierarchical ring all-reduce with a bandwidth and a latency for each element of a shape. An element of d >
// 1 takes 2(d−1)/d of the bytes at the bandwidth, plus 2(d−1) latencies, and passes 1/d of the bytes on to the next
// level. No communication is hidden: the factor is compute / (compute + communication).
type Rings struct {
	Bandwidth [6]float64 // bytes a second
	Latency   [6]float64 // seconds
}

// Slow returns a network of 600 GB/s in a machine, 25 GB/s in a rack and 10 GB/s between racks.
func Slow() Rings {
	return Rings{
		Bandwidth: [6]float64{600e9, 600e9, 600e9, 600e9, 25e9, 10e9},
		Latency:   [6]float64{0, 0, 0, 0.5e-6, 5e-6, 50e-6},
	}
}

// Factor implements Factors.
func (r Rings) Factor(j *Job, s Shape) (float64, error) {
	c, b, err := j.model()
	if err != nil {
		return 0, err
	}
	t := 0.0
	for i, n := range s {
		if n > 1 {
			d := float64(n)
			t += float64(2*(d-1)/d*b/r.Bandwidth[i]) + float64(2*(d-1)*r.Latency[i])
			b /= d
		}
	}
	return c / (c + t), nil
}

// models holds compute microseconds and bytes of an iteration, by name.
var models = map[string][2]float64{
	"ResNet50":    {11823.0, 102011648},
	"ResNet18":    {180.2, 46715648},
	"AlexNet":     {1207.2, 244361984},
	"MobileNetV3": {63.2, 9870144},
	"VGG":         {3837.1, 531405568},
	"BERT":        {1711.4, 562044928},
}

const micro = 1e-6

// Models returns the names of models for which a job needs no Compute and Bytes.
func Models() []string {
	return []string{"AlexNet", "BERT", "MobileNetV3", "ResNet18", "ResNet50", "VGG"}
}

// model returns the compute seconds and the exchanged bytes of an iteration.
func (j *Job) model() (compute, bytes float64, err error) {
	if j.Compute > 0 {
		return j.Compute, j.Bytes, nil
	}
	if m, ok := models[j.Model]; ok {
		return m[0] * micro, m[1], nil
	}
	return 0, 0,
		fmt.Errorf("nothing is known of how model %q computes and communicates, want one of %s, or a table of factors",
			j.Model, strings.Join(Models(), ", "))
}

// Table holds factors measured or computed elsewhere, by model and shape.
type Table struct {
	Name    string // of the network
	Factors map[string]map[Shape]float64
	Else    Factors // used for factors that the table lacks; nil = such a factor is an error
}

// Set notes a factor.
func (t *Table) Set(model string, s Shape, factor float64) error {
	if !(factor > 0) || factor > 1 || math.IsInf(factor, 0) {
		return fmt.Errorf("got factor %v, want a share above 0 and up to 1", factor)
	}
	if t.Factors == nil {
		t.Factors = map[string]map[Shape]float64{}
	}
	if t.Factors[model] == nil {
		t.Factors[model] = map[Shape]float64{}
	}
	t.Factors[model][s] = factor
	return nil
}

// Factor implements Factors.
func (t *Table) Factor(j *Job, s Shape) (float64, error) {
	if f, ok := t.Factors[j.Model][s]; ok {
		return f, nil
	}
	if t.Else != nil {
		return t.Else.Factor(j, s)
	}
	return 0, fmt.Errorf("the table of factors has none of network %s, model %s and shape %v, which the run came to",
		t.Name, j.Model, s)
}
