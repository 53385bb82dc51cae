package conform

// KindLabs are the labs of every kind in all its forms.
var KindLabs = kindLabs
