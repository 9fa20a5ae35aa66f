// Package policymix is the environment PolicyMix-v1: which of five schedulers of the literature acts until the next
// decision? World and reward are those of JobSelect-v1.
//
// Always the same one is that scheduler: gymctl sim gives the same schedule.
package policymix
