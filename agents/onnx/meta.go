package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"clustergym/env"
	"clustergym/nets/onnx"
)

// Keys of a model's metadata.
const (
	KeyEnv    = "clustergym.env"    // env.Spec.ID
	KeySpec   = "clustergym.spec"   // SpecHash
	KeyFields = "clustergym.fields" // the fields of an observation with their shapes, in order, as JSON
	// the environment's settings, and the cluster and workload if that is generated, as YAML
	KeyRun    = "clustergym.run"
	KeyAgent  = "clustergym.agent"
	KeyName   = "clustergym.name" // agent, run and step, as in tables
	KeyStep   = "clustergym.step"
	KeyCommit = "clustergym.commit"
	KeySet    = "clustergym.kernels" // set of float32 kernels that it was trained with
)

// field is a field of an observation in the metadata.
type field struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

// Fields returns the fields of an observation of s as JSON.
func Fields(s env.Spec) string {
	list := []field{}
	for _, f := range s.Obs {
		list = append(list, field{f.Name, append([]int{}, f.Shape...)})
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(err) // text and numbers
	}
	return string(b)
}

// difference says for which observations or actions a model is whose specification differs from s.
func difference(m *onnx.Model, s env.Spec) string {
	var has []field
	if err := json.Unmarshal([]byte(m.Meta(KeyFields)), &has); err != nil {
		has = nil // it does not say
	}
	for i := range max(len(has), len(s.Obs)) {
		there, here := "nothing", "nothing"
		if i < len(has) {
			there = onnx.Plain(has[i].Name) + " " + onnx.ShapeString(has[i].Shape)
		}
		if i < len(s.Obs) {
			here = s.Obs[i].Name + " " + onnx.ShapeString(s.Obs[i].Shape)
		}
		if has != nil && there != here {
			return fmt.Sprintf(
				"observations with %s in place of %s, want the settings, the cluster and the slots that it was trained with", there,
				here)
		}
	}
	return fmt.Sprintf("%s with other fields or actions: its specification has the hash %.12s…, this one %.12s…", s.ID,
		onnx.Plain(m.Meta(KeySpec)), SpecHash(s))
}

// SpecHash returns a hash of what a policy has to fit: the environment, the fields of its observations and its actions.
// It is SHA-256, in hexadecimal, of the JSON text {"id":…,"obs":[{"name":…,"shape":[…]}…],"sizes":[…],"numbers":…}.
func SpecHash(s env.Spec) string {
	b, err := json.Marshal(struct {
		ID      string          `json:"id"`
		Obs     json.RawMessage `json:"obs"`
		Sizes   []int           `json:"sizes"`
		Numbers int             `json:"numbers"`
	}{s.ID, json.RawMessage(Fields(s)), append([]int{}, s.Action.Sizes...), len(s.Action.Low)})
	if err != nil {
		panic(err)
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
