package incumbent

import (
	"fmt"
	"time"

	"clustergym/simulator/schedulers/fairshare"
)

// fairName is the policy of the simulator that models with fair share are.
const fairName = "fairshare+strict+easy"

// day is one day.
const day = 24 * time.Hour

// Fair returns the models with fair share of users or of accounts. Their weights are not those of a cluster, which the
// record does not tell: they span what is common, and Fit looks for closer ones between them.
func Fair(accounts bool) []Model {
	by := "user"
	if accounts {
		by = "account"
	}
	var all []Model
	for _, half := range []time.Duration{day, 7 * day} {
		for _, age := range []float64{.1, 1, 4} {
			all = append(all, fair(fairshare.Priority{Age: age, Size: .1, Fair: 1, MaxAge: 7 * day, HalfLife: half, By: by}))
		}
	}
	return all
}

// fair returns the model of a priority.
func fair(p fairshare.Priority) Model {
	return Model{
		Name: fairName,
		Text: fmt.Sprintf("past use of the %s (half-life %.3g d), age (weight %.3g, full after %.3g d) and size (weight %.3g) "+
			"decide, with back-filling", p.By, p.HalfLife.Hours()/24, p.Age, p.MaxAge.Hours()/24, p.Size),
		fair: &p,
	}
}

// between returns priorities between those of Fair, of the same users or accounts.
func between(p *fairshare.Priority) []Model {
	var all []Model
	for _, half := range []time.Duration{2 * day, 4 * day, 7 * day, 14 * day} {
		for _, age := range []float64{.1, .5, 1, 2} {
			for _, size := range []float64{.1, 1} {
				x := *p
				x.HalfLife, x.Age, x.Size = half, age, size
				all = append(all, fair(x))
			}
		}
	}
	return all
}

// neighbours returns priorities with other weights.
func neighbours(p *fairshare.Priority) []Model {
	var all []Model
	for _, change := range []func(x *fairshare.Priority){
		func(x *fairshare.Priority) { x.HalfLife /= 2 },
		func(x *fairshare.Priority) { x.HalfLife *= 2 },
		func(x *fairshare.Priority) { x.HalfLife = x.HalfLife * 10 / 14 },
		func(x *fairshare.Priority) { x.HalfLife = x.HalfLife * 14 / 10 },
		func(x *fairshare.Priority) { x.Age /= 2 },
		func(x *fairshare.Priority) { x.Age *= 2 },
		func(x *fairshare.Priority) { x.Age *= 1.4 },
		func(x *fairshare.Priority) { x.Age /= 1.4 },
		func(x *fairshare.Priority) { x.Age *= 1.1 },
		func(x *fairshare.Priority) { x.Age /= 1.1 },
		func(x *fairshare.Priority) { x.Age, x.MaxAge = 2*x.Age, 2*x.MaxAge },
		func(x *fairshare.Priority) { x.Age, x.MaxAge = x.Age/2, x.MaxAge/2 },
		func(x *fairshare.Priority) { x.Size += .1 },
		func(x *fairshare.Priority) { x.Size -= .1 },
		func(x *fairshare.Priority) { x.Size += .5 },
	} {
		x := *p
		change(&x)
		if x.Validate() == nil {
			all = append(all, fair(x))
		}
	}
	return all
}
