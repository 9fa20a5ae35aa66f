package estimates

import (
	"embed"

	"clustergym/experiments/study"
)

//go:embed experiment.yaml report.yaml expected.csv.zst
var files embed.FS

// method is a version that is part of every cell's input. Raise it when cells compute something else with equal
// settings.
const method = 2

// Study returns the study estimates, which compares what is known of run times.
func Study() study.Study { return studyWith(settingsOf) }

// studyWith returns the study with the settings that planned returns. Tests pass small ones.
func studyWith(planned func(study.Plan) (settings, error)) study.Study {
	// RunTimes stays empty: every table has a column rung, because rungs are what is compared.
	return study.Of(study.Study{
		Name:  "estimates",
		Title: "What schedulers lose by not knowing run times: predictors, schedulers and workloads",
		Cite: "measurements of this project; last two: Tsafrir, Etsion and Feitelson, Backfilling using system-generated " +
			"predictions " +
			"rather than user runtime estimates, IEEE TPDS 18(6), 2007",
		Takes: "quick 10 seconds, full 2 minutes, with --data 6 minutes on two cores",
	}, files, planned, study.Parts[settings]{
		Cells: (*settings).cells, Values: (*settings).values, Figures: (*settings).figures,
	})
}
