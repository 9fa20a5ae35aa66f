package profile

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// elasticflow reads a table of ElasticFlow (Gu et al., ASPLOS 2023): one model on one type of GPU, a row for each
// global batch size, a column for each number of GPUs, in iterations a second; nan, 0 or an empty cell if it does not
// fit or was not measured.
func (b *builder) elasticflow(r io.Reader, file, name, gpu string) error {
	d, err := newRows(r, file, "global_batch_size")
	if err != nil {
		return err
	}
	gpus := make([]int, len(d.Columns()))
	for i, column := range d.Columns() {
		if column == "global_batch_size" {
			continue
		}
		n, err := strconv.Atoi(column)
		if err != nil || n < 1 || n > maxGPUs || slices.Contains(gpus[:i], n) {
			return d.FaultIn("", column, fmt.Sprintf("a number of GPUs from 1 to %d in the header, each once", maxGPUs))
		}
		gpus[i] = n
	}
	for d.next() {
		batch := d.whole("global_batch_size", maxBatch)
		m := b.model(named(name, int(batch)), int(batch))
		if m.find(gpu) != nil {
			d.fail("global_batch_size", "each batch size once for "+name+" on "+gpu)
		}
		for i, n := range gpus {
			if n == 0 {
				continue
			}
			rate := d.rate(d.Columns()[i])
			m.add(gpu, point{n, 1, rate})
		}
	}
	return d.end()
}

// anyGPU is the GPU type for tables that do not name theirs.
const anyGPU = "gpu"

// lucidName reads the model and batch size of one of Lucid's configurations.
func (d *rows) lucidName(suffix string) (name string, batch int) {
	model, dataset := d.name("model"+suffix), d.name("dataset"+suffix)
	batch = int(d.whole("batchsize"+suffix, maxBatch))
	amp := ""
	switch d.cell("amp" + suffix) {
	case "0":
	case "1":
		amp = ", amp"
	default:
		d.fail("amp"+suffix, "0 or 1")
	}
	return fmt.Sprintf("%s (%s, batch size %d%s)", model, dataset, batch, amp), batch
}

// lucidPairs reads colocate_info.csv of Lucid (Hu et al., ASPLOS 2023; published for non-commercial use only): two
// models on one GPU and the speed of each, 1 = alone. Their combined use of the GPU (gpu_util, gmem_util, gmem) is not
// read.
func (b *builder) lucidPairs(r io.Reader, file string) error {
	d, err := newRows(r, file, "model1", "dataset1", "gpu_num1", "batchsize1", "amp1", "speed1", "model2", "dataset2",
		"gpu_num2", "batchsize2", "amp2", "speed2")
	if err != nil {
		return err
	}
	for d.next() {
		var of [2]*model
		var speed [2]float64
		for i, suffix := range [...]string{"1", "2"} {
			name, batch := d.lucidName(suffix)
			if d.cell("gpu_num"+suffix) != "1" {
				d.fail("gpu_num"+suffix, "1: the pairs share one GPU")
			}
			speed[i] = d.number("speed" + suffix)
			of[i] = b.model(name, batch)
		}
		b.keeps(of[0], of[1], speed[0])
		b.keeps(of[1], of[0], speed[1])
	}
	return d.end()
}

// lucidAlone reads single_data.csv of Lucid: a model alone on a GPU of an unnamed type, its speed in examples a
// second and its GPU memory in MiB. The throughput is speed over batch size.
func (b *builder) lucidAlone(r io.Reader, file string) error {
	d, err := newRows(r, file, "model", "dataset", "batchsize", "amp", "speed", "gmem")
	if err != nil {
		return err
	}
	for d.next() {
		name, batch := d.lucidName("")
		speed := d.number("speed")
		mem := d.number("gmem")
		m := b.model(name, batch)
		if m.find(anyGPU) != nil {
			d.fail("model", "each model, dataset, batch size and amp once")
		}
		m.add(anyGPU, point{1, 1, speed / float64(batch)})
		m.mem = mebibytes(mem)
	}
	return d.end()
}

// mebibytes converts to bytes, at most what an int64 holds.
func mebibytes(v float64) int64 {
	v = math.Round(v * (1 << 20))
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(v)
}

// tiresias reads the tensors of Tiresias (Gu et al., NSDI 2019), one a row, in MB. Their MB is 2^20 bytes: the first
// dense layer of VGG, 25,088 by 4,096 float32 numbers, is listed as 392. GradientBytes is the sum. A model is skewed if
// its largest tensor is more than half of the sum, as in VGG and AlexNet (0.61 to 0.77). All others are below 0.14, so
// any threshold in between separates the same models.
func (b *builder) tiresias(r io.Reader, file string) error {
	d, err := newRows(r, file, "model_name", "tensor_index", "tensor_size_mb")
	if err != nil {
		return err
	}
	type sizes struct{ sum, largest float64 }
	of := map[*model]*sizes{}
	for d.next() {
		name := d.name("model_name")
		v := d.number("tensor_size_mb")
		m := b.model(name, batchOf(name))
		if of[m] == nil {
			of[m] = &sizes{}
		}
		of[m].sum += v
		of[m].largest = max(of[m].largest, v)
	}
	for m, s := range of { // models are independent, so order does not matter
		m.gradient, m.skewed = mebibytes(s.sum), s.largest > s.sum/2
	}
	return d.end()
}
