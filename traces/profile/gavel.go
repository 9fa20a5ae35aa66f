package profile

import (
	"fmt"
	"strconv"
	"strings"
)

// unconsolidated is the suffix of GPU types in Gavel's tables for gangs that are spread over nodes.
const unconsolidated = "_unconsolidated"

// gavel reads a table of Gavel (Narayanan et al., OSDI 2020): an object by type of GPU of objects by job, a Python
// tuple as in "('ResNet-18 (batch size 64)', 2)", of steps a second. The entry under "null" is the job alone. The entry
// under another job's tuple is a pair of speeds, this job's and the other's, while both share their GPUs. 0.0 means
// that it did not fit or was not measured.
func (b *builder) gavel(data []byte, file string) error {
	d := newObject(data, file)
	d.each("an object of GPU types", func(gpu string) {
		nodes := 1
		if base, ok := strings.CutSuffix(gpu, unconsolidated); ok {
			gpu, nodes = base, 0
		}
		if gpu == "" {
			d.fail(gpu, "the name of a GPU type")
		}
		d.each("an object of jobs", func(job string) { b.gavelJob(d, gpu, nodes, job) })
	})
	return d.end()
}

func (b *builder) gavelJob(d *object, gpu string, nodes int, job string) {
	name, gpus, ok := tuple(job)
	if !ok {
		d.fail(job, `a job and its GPUs, as in ('LM (batch size 5)', 1)`)
	}
	m := b.model(name, batchOf(name))
	type shared struct {
		other *model
		rate  float64
	}
	var with []shared
	alone, found := 0.0, false
	d.each("an object of throughputs", func(partner string) {
		if partner == "null" {
			alone, found = d.number(), true
			return
		}
		other, _, ok := tuple(partner)
		if !ok {
			d.fail(partner, `"null" or a job and its GPUs, as in ('LM (batch size 5)', 1)`)
		}
		var rates [2]float64
		d.numbers(rates[:])
		with = append(with, shared{b.model(other, batchOf(other)), rates[0]})
	})
	if !found {
		d.fail("no \"null\"", `the throughput alone under "null"`)
	}
	if !m.add(gpu, point{gpus, nodes, alone}) {
		d.fail(job, "each job once")
	}
	if nodes == 1 && alone > 0 { // the co-location figures are the same for both placements
		for _, s := range with {
			b.keeps(m, s.other, s.rate/alone)
		}
	}
}

// tuple reads a Python tuple of a string and a whole number.
func tuple(s string) (name string, n int, ok bool) {
	s, ok = strings.CutPrefix(s, "(")
	if !ok || len(s) < 2 || s[0] != '\'' && s[0] != '"' {
		return "", 0, false
	}
	end := strings.LastIndexByte(s, s[0])
	num, ok := strings.CutSuffix(s[end+1:], ")")
	num, comma := strings.CutPrefix(num, ",")
	if end < 2 || !ok || !comma || strings.ContainsRune(s[1:end], '\\') { // names with Python escapes are refused
		return "", 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(num))
	if err != nil || n < 1 || n > maxGPUs {
		return "", 0, false
	}
	return s[1:end], n, true
}

// chronus reads model_info.json of Chronus (Gao et al., SoCC 2021): an object by model of objects by number of GPUs of
// objects by number of nodes over which they are spread; the values are speeds relative to one node.
func (b *builder) chronus(data []byte, file string) error {
	d := newObject(data, file)
	count := func(key, what string, hi int) int {
		n, err := strconv.Atoi(key)
		if err != nil || n < 1 || n > hi {
			d.fail(key, fmt.Sprintf("a number of %s from 1 to %d", what, hi))
		}
		return n
	}
	d.each("an object of models", func(name string) {
		if name == "" {
			d.fail(name, "the name of a model")
		}
		m := b.model(name, batchOf(name))
		d.each("an object of numbers of GPUs", func(key string) {
			gpus := count(key, "GPUs", maxGPUs)
			d.each("an object of numbers of nodes", func(key string) {
				nodes := count(key, "nodes", gpus)
				if v := d.number(); v > 0 {
					m.relative = append(m.relative, point{gpus, nodes, v})
				}
			})
		})
	})
	return d.end()
}
