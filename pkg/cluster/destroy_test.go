package cluster

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// All are deleted, what is gone already is no error, and each error is that of its
// object.
func TestDeleteAll(t *testing.T) {
	var there []runtime.Object
	var going []*metav1.PartialObjectMetadata
	for i := range 3 * deletesAtOnce {
		m := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: fmt.Sprintf("c%d", i), UID: types.UID(fmt.Sprint(i))},
		}
		going = append(going, m)
		if i != 1 {
			there = append(there, m)
		}
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, there...)
	refused := errors.New("refused")
	client.PrependReactor("delete", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.(clienttesting.DeleteAction).GetName() == "c2", nil, refused
	})
	resource := client.Resource(resources["ConfigMap"]).Namespace("demo")
	for i, err := range deleteAll(t.Context(), resource, going) {
		if (i == 2) != errors.Is(err, refused) || i != 2 && err != nil {
			t.Errorf("c%d: %v", i, err)
		}
	}
	left, err := resource.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 {
		t.Errorf("%d are left, want the one that was refused: %v", len(left.Items), err)
	}
}
