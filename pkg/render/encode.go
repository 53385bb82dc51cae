package render

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

func encode(obj runtime.Object) ([]byte, error) { return json.Marshal(obj) }
