package config

import (
	"cmp"
	"encoding"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"clustergym/configs"
)

var update = flag.Bool("update", false, "write the page of the configuration")

// A key of the page is a leaf of the configuration.
type key struct{ path, value, text string }

// comments holds the comments of structs' fields, by package, type and field.
type comments map[string]map[string]string

// of returns the comments of a struct's fields, read from the sources of its package.
func (c comments) of(t *testing.T, s reflect.Type) map[string]string {
	name := s.PkgPath() + "." + s.Name()
	if c[name] != nil {
		return c[name]
	}
	files, err := filepath.Glob(filepath.Join("..", "..",
		filepath.FromSlash(strings.TrimPrefix(s.PkgPath(), "clustergym/")), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields := map[string]string{}
			if body, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range body.Fields.List {
					for _, id := range field.Names {
						fields[id.Name] = strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
					}
				}
			}
			c[s.PkgPath()+"."+spec.Name.Name] = fields
			return false
		})
	}
	return c[name]
}

// keysOf appends the leaves below v. Settings of an environment have pages of their own.
func (c comments) keysOf(t *testing.T, all []key, path string, v reflect.Value) []key {
	texts := c.of(t, v.Type())
	names := map[string]string{} // Go's name to YAML's
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		names[v.Type().Field(i).Name] = name
	}
	for i := range v.NumField() {
		field, f := v.Type().Field(i), v.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		switch {
		case tag == "-" || !field.IsExported() || f.Kind() == reflect.Interface:
			continue
		case strings.Contains(options, "inline"):
			all = c.keysOf(t, all, path, f)
			continue
		}
		text := texts[field.Name]
		for from, to := range names {
			if to != "" && to != "-" {
				text = regexp.MustCompile(`\b`+from+`\b`).ReplaceAllString(text, "`"+to+"`")
			}
		}
		element := f
		if f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct {
			element = reflect.New(f.Type().Elem()).Elem()
			all = append(all, key{path + tag, "", text})
			tag += "[]"
		}
		if element.Kind() == reflect.Struct && !leaf(element.Type()) {
			all = c.keysOf(t, all, path+tag+".", element)
			continue
		}
		all = append(all, key{path + tag, value(t, f), text})
	}
	return all
}

// leaf reports whether values of a type are written as one value.
func leaf(s reflect.Type) bool {
	p := reflect.PointerTo(s)
	return p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) ||
		p.Implements(reflect.TypeFor[interface{ MarshalYAML() (any, error) }]())
}

// value writes a default as gymctl config show does, on one line.
func value(t *testing.T, v reflect.Value) string {
	if v.Kind() == reflect.Slice && v.Len() == 0 {
		return "[]"
	}
	one := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: v.Type(), Tag: `yaml:"v"`}})).Elem()
	one.Field(0).Set(v)
	b, err := configs.Encode(one.Interface())
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(b), "v:"))
	if lines := strings.Fields(strings.ReplaceAll(text, "\n", " ")); strings.HasPrefix(text, "- ") {
		text = "[" + strings.Join(strings.Split(strings.TrimPrefix(strings.Join(lines, " "), "- "), " - "), ", ") + "]"
	}
	return text
}

// sections are the parts of the page: the first word of a key, and the page that explains them.
var sections = []struct{ first, about string }{
	{"", "A run, its workload and its cluster. [Hardware](hardware.md) explains clusters, [checkpoints](checkpoint.md) what a run writes."},
	{"trace", "The workload ([traces](traces.md), [job profiles](job-profiles.md))."},
	{"env", "The environment. Each has further keys `env.KEY`: [environments](environments/README.md)."},
	{"ppo", "The agent `ppo` ([train](../guides/train.md), [what each key brings](../evidence/keys.md))."},
	{"ddqn", "The agent `ddqn`."},
	{"maml", "The agent `maml` ([learning to adapt](../guides/train.md#learning-to-adapt))."},
	{"improper", "The agent `improper` ([mixing controllers](../guides/train.md#mixing-controllers))."},
	{"train", "The training loop ([train](../guides/train.md))."},
	{"eval", "The comparison ([evaluate](../guides/evaluate.md), [what is judged](../guides/train.md#what-is-judged), [looking ahead](../guides/look-ahead.md#settings), [tuning](../guides/tune.md#the-folder)). The weights of `hold` and `index` are explained with [schedulers](schedulers.md#holding-jobs-back); all 0 stands for their own defaults."},
}

// configurationPage is docs/reference/configuration.md.
func configurationPage(t *testing.T) string {
	cfg := Default()
	all := comments{}.keysOf(t, nil, "", reflect.ValueOf(cfg))
	var b strings.Builder
	b.WriteString(`# Configuration

Every key of a run, with the default of the environment ` + "`JobSelect-v2`" + ` and the comment of its field in the sources. The page is
written by ` + "`go test ./lab/config -run TestConfigurationPage -update`" + `.

- ` + "`gymctl config show quickstart`" + ` prints all keys of the preset that ` + "`gymctl train`" + ` runs; presets differ from the defaults here.
- ` + "`--set ppo.gamma=0.95`" + ` changes one key. ` + "`-c FILE`" + ` takes a file of your own: begin with ` + "`gymctl config show quickstart > mine.yaml`" + `.
  Keys that a file leaves out have the defaults of this page, not those of the quick start.
- ` + "`--env ID`" + ` takes another environment; ` + "`gymctl envs`" + ` lists them, and ` + "`gymctl envs ID`" + ` prints the page of one.
- ` + "`gymctl config check FILE`" + ` finds every fault of a file. Clusters have a form of their own ([hardware](hardware.md)), experiments too
  ([papers](../guides/papers.md#settings)).
`)
	for _, s := range sections {
		title := s.first
		if title == "" {
			title = "The run"
		} else {
			title = "`" + title + "`"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| key | default | meaning |\n| --- | --- | --- |\n", title, s.about)
		for _, k := range all {
			first, _, nested := strings.Cut(k.path, ".")
			if !nested {
				first = ""
			}
			if first == s.first {
				value := k.value
				if value != "" {
					value = "`" + value + "`"
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.path, value,
					cmp.Or(strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(k.text), "–"))
			}
		}
	}
	return b.String()
}

// docs/reference/configuration.md has every key of a run with the comment of its field; -update writes it.
func TestConfigurationPage(t *testing.T) {
	page := configurationPage(t)
	name := filepath.Join("..", "..", "docs", "reference", "configuration.md")
	if *update {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil { //nolint:gosec // a page for all
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != page {
		t.Errorf("%s is not the page of the configuration (%v): go test ./lab/config -run TestConfigurationPage -update",
			name, err)
	}
	for _, part := range []string{"| `seed` |", "| `trace.synth.jobs` |", "| `ppo.lr` |",
		"| `ppo.network.branches[].convs[].filters` |", "| `eval.hold.width` |"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no row %s", part)
		}
	}
}
