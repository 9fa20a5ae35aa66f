// Package perfmodel learns from measurements how fast jobs run beside each other. It is an ensemble of networks, each
// fitted to a bootstrap sample, that predicts a job's speed divided by its speed alone (Speeds of env/workerplace).
// Where the members disagree, the prediction is uncertain; package mbmpo makes use of that.
package perfmodel
