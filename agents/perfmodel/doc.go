// Package perfmodel learns how fast jobs run beside each other from what was measured: an ensemble of networks, each fitted to
// a bootstrap sample, that predicts a job's speed by that which it would have alone (Speeds of env/workerplace). Where they
// disagree, little is known. What an ensemble is good for is package mbmpo's concern.
package perfmodel
