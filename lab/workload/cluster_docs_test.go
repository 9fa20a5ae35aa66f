package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"clustergym/configs"
	"clustergym/simulator/cluster"
)

// docs/reference/hardware.md names every key and every preset with its totals, and its example is a valid cluster.
func TestThePageOfClustersIsComplete(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "hardware.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, name := range ClusterPresets() {
		spec, err := ClusterSpec(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := cluster.New(spec)
		if err != nil {
			t.Fatal(err)
		}
		if row := fmt.Sprintf("| `%s` | %d | %d | %d |", name, c.Racks(), c.Nodes(), c.GPUs()); !strings.Contains(page, row) {
			t.Errorf("the table of presets has no row %s", row)
		}
	}
	_, rest, _ := strings.Cut(page, "```yaml\n")
	example, _, ok := strings.Cut(rest, "```\n")
	var spec cluster.Spec
	if err := configs.DecodeBytes("example", []byte(example), &spec); !ok || err != nil {
		t.Fatalf("the example is no cluster: %v", err)
	}
	c, err := cluster.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	if c.GPUs() != 2*8*8+4*2 || len(c.VCs()) != 3 || c.VCFree(1) != 12*8 || c.VCFree(2) != 4*8+4*2 {
		t.Errorf("the example has %d GPUs, virtual clusters %v of %d and %d", c.GPUs(), c.VCs(), c.VCFree(1), c.VCFree(2))
	}
	var keys func(t reflect.Type) []string
	keys = func(t reflect.Type) []string {
		var all []string
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "-" {
				continue
			}
			all = append(all, name)
			if k := f.Type; k.Kind() == reflect.Struct {
				all = append(all, keys(k)...)
			} else if k.Kind() == reflect.Slice && k.Elem().Kind() == reflect.Struct {
				all = append(all, keys(k.Elem())...)
			}
		}
		return all
	}
	for _, k := range keys(reflect.TypeFor[cluster.Spec]()) {
		if !regexp.MustCompile("[`.{ ]" + k + "[`.,\\[}]").MatchString(page) {
			t.Errorf("the page does not tell of key %s", k)
		}
	}
}
