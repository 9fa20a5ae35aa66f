// Package attained keeps what the orders of attained service need to know of each job: the discretised queues of las,
// las-2d and las-2d-prompt (Queues), and the distribution of GPU-times, with the quanta that jobs have completed, of
// gittins-2d (Gittins).
package attained
