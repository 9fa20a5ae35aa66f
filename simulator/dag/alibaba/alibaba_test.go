package alibaba

import (
	"slices"
	"testing"
	"time"

	"clustergym/internal/rng"
	"clustergym/simulator/dag"
	"clustergym/traces"
)

// job is M1, with three instances, then R2_1 with two.
func job() *traces.Job {
	return &traces.Job{ID: "j", Graph: &traces.Graph{
		Tasks: []traces.Task{{Name: "M1", Instances: 3, Work: 4 * time.Second}, {Name: "R2_1", Instances: 2}},
		Edges: []traces.Edge{{Parent: 0, Child: 1}},
	}}
}

func TestAJobByHand(t *testing.T) {
	g, err := Graph(job(), Options{})
	if err != nil || g.Name != "j" || g.Len() != 2 || g.Edges() != 1 || g.Task(0).Work != 4 || g.Task(1).Work != 0 ||
		g.Task(1).ID != "R2_1" || g.Bytes() != 0 {
		t.Errorf("%+v, %v", g, err)
	}
	g, err = Graph(job(), Options{Instances: 10, Work: 0.5, Bytes: func() float64 { return 7 }})
	if err != nil || g.Len() != 5 || g.Edges() != 6 || g.Task(2).ID != "M1.2" || g.Task(4).Work != 0.5 {
		t.Fatalf("%+v, %v", g, err)
	}
	if p := g.Preds(4); !slices.Equal(p, []dag.Link{{Task: 0, Bytes: 7}, {Task: 1, Bytes: 7}, {Task: 2, Bytes: 7}}) {
		t.Errorf("parents %v", p)
	}
	if _, err := Graph(&traces.Job{ID: "x"}, Options{}); err == nil {
		t.Error("a job without a graph")
	}
}

func TestTasksOfOneNameAreToldApart(t *testing.T) {
	j := &traces.Job{ID: "j",
		Graph: &traces.Graph{Tasks: []traces.Task{{Name: "MergeTask", Instances: 1}, {Name: "MergeTask#2", Instances: 1},
			{Name: "MergeTask", Instances: 1}, {Name: "MergeTask", Instances: 1}}}}
	g, err := Graph(j, Options{})
	if err != nil || g.Task(0).ID != "MergeTask" || g.Task(2).ID != "MergeTask#3" || g.Task(3).ID != "MergeTask#4" {
		t.Errorf("%v, %v", g, err)
	}
	if _, err := Graph(j, Options{Instances: 2}); err != nil {
		t.Error(err)
	}
}

func TestDrawnBytesHaveTheirMean(t *testing.T) {
	draw := Exponential(100, rng.Stream(1, "alibaba/test"))
	sum := 0.0
	for range 20_000 {
		sum += draw() / 20_000
	}
	if sum < 97 || sum > 103 {
		t.Errorf("mean %v, want about 100", sum)
	}
}
