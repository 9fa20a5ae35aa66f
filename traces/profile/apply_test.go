package profile

import (
	"strconv"
	"testing"
	"time"

	"clustergym/traces"
)

func TestMixProfileByHand(t *testing.T) {
	lwf, _ := Named("lwf")
	top, _ := Named("topdrl-cnn")
	for _, c := range []struct {
		m    *Mix
		name string
		want traces.Profile
	}{
		{&lwf, "vgg16", traces.Profile{Name: "vgg16", GradientBytes: 526_400_000, Compute: 90 * time.Millisecond,
			MemBytes: 4527 << 20, Skewed: true}},
		{&lwf, "lstm (batch size 3)",
			traces.Profile{Name: "lstm", GradientBytes: 251_800_000, Compute: 79 * time.Millisecond, MemBytes: 2751 << 20}},
		// 4·10^9 · 53 · 3 / 10.6·10^12 = 0.06 s
		{&top, "resnet50 (batch size 53)",
			traces.Profile{Name: "resnet50", GradientBytes: 98_000_000, Compute: 60 * time.Millisecond}},
	} {
		p := c.m.Profile(1, "j", c.name)
		if p.Name != c.want.Name || p.GradientBytes != c.want.GradientBytes || p.Compute != c.want.Compute ||
			p.MemBytes != c.want.MemBytes || p.Skewed != c.want.Skewed || p.Speeds != nil || p.Scaling != nil {
			t.Errorf("%s: %+v, want %+v", c.name, *p, c.want)
		}
	}
}

func TestMixProfilesFollowDrawWhereNoModelIsNamed(t *testing.T) {
	for _, name := range Names() {
		m, _ := Named(name)
		shared := map[string]*traces.Profile{}
		for i := range 300 {
			id := strconv.Itoa(i)
			v, batch := m.Draw(5, id)
			p := m.Profile(5, id, "no such model")
			if p.Name != v.Name || p.Compute <= 0 || p.GradientBytes <= 0 {
				t.Fatalf("%s: job %d has %+v, Draw gives %+v", name, i, p, v)
			}
			key := v.Name + strconv.Itoa(batch)
			if shared[key] != nil && shared[key] != p {
				t.Fatalf("%s: two profiles of %s", name, key)
			}
			shared[key] = p
			if by := m.Profile(5, id, v.Name); by != p { // the same job draws the same batch size
				t.Fatalf("%s: by name %+v, drawn %+v", name, by, p)
			}
			if v.Batch > 0 && batch != v.Batch {
				t.Fatalf("%s: %s with batch size %d", name, v.Name, batch)
			}
		}
	}
}

func TestApplyLeavesProfilesThatAreThere(t *testing.T) {
	m, _ := Named("dally")
	own := &traces.Profile{Name: "own"}
	jobs := []traces.Job{{ID: "a", Model: "BERT"}, {ID: "b", Profile: own}, {ID: "c"}}
	apply(&m, 3, jobs)
	if jobs[0].Profile.Name != "BERT" || jobs[1].Profile != own || jobs[2].Profile != m.Profile(3, "c", "") {
		t.Errorf("%+v", jobs)
	}
	other := []traces.Job{{ID: "c"}}
	apply(&m, 3, other)
	if other[0].Profile != jobs[2].Profile {
		t.Error("the other jobs change what a job gets")
	}
}

func TestHashSeesEveryFigure(t *testing.T) {
	base := Mix{Models: []Model{{Name: "a", MB: 1, GFLOPs: 1}}, Batches: []int{1}}
	seen := map[string]int{base.Hash(): -1}
	for i, change := range []func(v *Model){
		func(v *Model) { v.Name = "b" }, func(v *Model) { v.MB = 2 }, func(v *Model) { v.GFLOPs = 2 },
		func(v *Model) { v.Ms = 2 },
		func(v *Model) { v.Batch = 2 }, func(v *Model) { v.MemMB = 2 }, func(v *Model) { v.Skewed = true },
	} {
		m := base
		m.Models = []Model{base.Models[0]}
		change(&m.Models[0])
		if j, twice := seen[m.Hash()]; twice {
			t.Errorf("changes %d and %d have one hash", i, j)
		}
		seen[m.Hash()] = i
	}
	// A mix without the newer figures keeps its old hash.
	if got, want := base.Hash(), "9712bd8da61c"; got[:12] != want {
		t.Errorf("hash %s, want %s…", got, want)
	}
}

func TestModelsWithTheirOwnBatchNeedNoList(t *testing.T) {
	m := Mix{Models: []Model{{Name: "a", MB: 1, Ms: 1, Batch: 8}}}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if v, b := m.Draw(1, "x"); v.Name != "a" || b != 8 {
		t.Errorf("%s, %d", v.Name, b)
	}
	m.Models = append(m.Models, Model{Name: "b", MB: 1, Ms: 1})
	if err := m.Validate(); err == nil {
		t.Error("a model without batch size passes without a list")
	}
}

// apply gives each job without a profile one of the mix. It changes the slice's jobs in place.
func apply(m *Mix, seed uint64, jobs []traces.Job) {
	for i := range jobs {
		if j := &jobs[i]; j.Profile == nil {
			j.Profile = m.Profile(seed, j.ID, j.Model)
		}
	}
}
