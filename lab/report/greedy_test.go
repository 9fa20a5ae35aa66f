package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Tables and documents name the rule of the agents that have one to name, and of no other policy.
func TestTablesNameTheRuleOfAnAgent(t *testing.T) {
	a := with(PolicyReport{Name: "ppo:a@9", Kind: KindCheckpoint}, 1, 2, 3)
	r := onRung("", "", "history", "causal", a, with(PolicyReport{Name: "sjf+skip"}, 1, 2, 3))
	r.Windows = []WindowInfo{{Jobs: 8}, {Jobs: 8}, {Jobs: 8}}
	show := func() string {
		var b bytes.Buffer
		if err := r.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	plain, err := json.Marshal(r.Policies)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"greedy", "choose", "draw"} {
		if text := show() + string(plain); strings.Contains(text, word) {
			t.Errorf("by the usual rule there is nothing to say: %s", text)
		}
	}
	for name, rule := range map[string]string{"m": "share", "n": "share", "o": "share", "p": "sample", "i": "own"} {
		p := with(PolicyReport{Name: name, Kind: KindModel, Greedy: rule}, 1, 2, 3)
		r.Policies = append(r.Policies, p)
	}
	r.Policies[0].Greedy = "argmax"
	text := show()
	for _, want := range []string{
		" choose by share: doing nothing only if it is likelier than all other actions together.\n",
		"ppo@9 chooses by argmax: the action of the largest number.\n", "p draws its actions.\n",
		"i gives actions alone, which are taken as they are.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	if got := rulesBelow([]string{"a", "b", "c"}, []string{"share", "share", "share"}); !strings.HasPrefix(got,
		"a, b and c choose by share") {
		t.Error(got)
	}

	e := EpisodeReport{Env: "CartPole-v1", Episodes: 1, Policies: []EpisodePolicy{{Name: "net", Greedy: "sample",
		Return: &EpisodeStatistic{PerEpisode: []float64{1}}, Length: new(float64)}}}
	sheets := e.Sheets()
	if below := sheets[0].Below; !strings.HasSuffix(below, "\nnet draws its actions.\n") {
		t.Errorf("below the table of episodes: %q", below)
	}
}
