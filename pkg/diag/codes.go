package diag

// Code is the stable name of a kind of diagnostic ("unknown-field").
type Code string
