package clitest

import (
	"fmt"
	"strings"
	"testing"
)

// Brief makes a training end after a moment.
var Brief = strings.Fields("--set train.steps=128 --set train.envs=2 --set train.eval_every=64 --set train.checkpoint_every=64 --set ppo.steps=32 " +
	"--set ppo.minibatches=2 --set ppo.network.hidden=[8] --set eval.validation=2 --workers 1")

// InYard changes to an empty folder with jobs.csv, whose jobs name no models, and models.csv, whose jobs do.
func InYard(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	jobs, models := "submit_time,duration,num_gpu\n", "submit_time,duration,num_gpu,model\n"
	for i := range 600 {
		gpus := []int{1, 6, 2, 5, 8, 3}[i%6]
		jobs += fmt.Sprintf("%d,%d,%d\n", 120*i, 300+i*977%3000, gpus)
		models += fmt.Sprintf("%d,%d,%d,%s\n", 60*i, 900+i*7%500, 1+i%3, []string{"resnet-50", "vgg-16"}[i%2])
	}
	Write(t, "jobs.csv", jobs)
	Write(t, "models.csv", models)
}
