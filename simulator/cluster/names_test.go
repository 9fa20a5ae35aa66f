package cluster

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestNodesHaveNames(t *testing.T) {
	s := Spec{Racks: []RackSpec{
		{Count: 2, Nodes: []NodeSpec{{Count: 2, GPUs: 8}}},
		{Nodes: []NodeSpec{{Count: 2, GPUs: 4, Names: []string{"a", "b"}}, {GPUs: 1}}},
	}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := s.NodeNames(); !slices.Equal(got, []string{"", "", "", "", "a", "b", ""}) {
		t.Errorf("%q", got)
	}
	if got := (&Spec{Racks: s.Racks[:1]}).NodeNames(); got != nil {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		of   RackSpec
		want string
	}{
		{RackSpec{Nodes: []NodeSpec{{Count: 2, GPUs: 1, Names: []string{"a"}}}},
			`racks[0].nodes[0].names: got "1 names", want a name for each of the 2 nodes`},
		{RackSpec{Nodes: []NodeSpec{{Count: 2, GPUs: 1, Names: []string{"a", "a"}}}}, "a name of its own for each node"},
		{RackSpec{Nodes: []NodeSpec{{GPUs: 1, Names: []string{""}}}}, "a name of its own for each node"},
		{RackSpec{Count: 2, Nodes: []NodeSpec{{GPUs: 1, Names: []string{"a"}}}}, "none in a rack with a count"},
	} {
		err := (&Spec{Racks: []RackSpec{c.of}}).Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.of, err, c.want)
		}
	}
}

func TestSameLooksAtEveryField(t *testing.T) {
	for i := range reflect.TypeFor[NodeSpec]().NumField() {
		var n NodeSpec
		f := reflect.ValueOf(&n).Elem().Field(i)
		switch f.Kind() {
		case reflect.Int:
			f.SetInt(2)
		case reflect.Float64:
			f.SetFloat(2)
		case reflect.String:
			f.SetString("a")
		case reflect.Struct:
			f.Field(0).SetString("a")
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{"a"}))
		}
		name := reflect.TypeFor[NodeSpec]().Field(i).Name
		if n.Same(NodeSpec{}) != (name == "Count" || name == "Names") {
			t.Errorf("%s: %v", name, n.Same(NodeSpec{}))
		}
	}
}
