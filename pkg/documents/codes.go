package documents

import "github.com/c9s-lab/c9s/pkg/diag"

// Codes of reading clabernetes' documents.
var (
	CodeUnknownField = declare("document-unknown-field", "a clabernetes document has a field that its kind does not have",
		"The field is misspelt or in the wrong place. Neither 0.8 nor 0.9 and later have it.",
		"Correct or remove the field.")
	CodeWrongType = declare("document-wrong-type", "a field of a clabernetes document has the wrong type",
		"The API server would reject the document too.",
		"Write the value as the hint says.")
	CodeValue = declare("document-value", "a field of a clabernetes document does not accept the value",
		"The value is none of those that the field accepts.",
		"Use one of the values in the hint.")
	CodeMissingField = declare("document-missing-field", "a clabernetes document lacks a required field",
		"The field is required.",
		"Add the field.")
	CodeKind = declare("document-kind", "the input has a kind or version that c9s does not read",
		"c9s reads Topology, Node, Link, NodeProfile, LauncherProfile and Config of version v1alpha1, and the ConfigMaps and Secrets that they name.",
		"Remove the document.")
	CodeDuplicate = declare("document-duplicate", "two documents have the same kind and name",
		"The input has the object twice.",
		"Remove one of the two.")
	CodeNamespaces = declare("document-namespaces", "the documents are in several namespaces",
		"The namespace is the lab, and one run renders one lab.",
		"Render the documents of each namespace on their own.")
	CodeName = declare("document-no-name", "the documents do not name the lab",
		"The lab's name is the owner in the label c9s.run/topologyOwner, else the namespace.",
		"Set metadata.namespace.")
	CodeMixed = declare("document-mixed", "the documents describe more than one lab",
		"A lab is one Topology, or the Nodes and Links of a namespace.",
		"Render each lab on its own.")
	CodeProfile = declare("document-profile", "a Node refers to a profile that is not in the input",
		"The profile has another name, or was not exported.",
		"Add the NodeProfile or LauncherProfile to the input, or correct the reference.")
	CodeMgmt = declare("document-mgmt", "profiles disagree on the management network",
		"A lab has one management network, and two profiles set different values for it.",
		"Write the same mgmt block in both profiles, or in one only.")
	CodeFile = declare("document-file", "a ConfigMap or Secret that a document names is not in the input",
		"c9s copies the files into the lab's own objects when it renders. A file that it need not read, it leaves to the Pod, which mounts the ConfigMap or Secret of the lab's namespace.",
		"Add the ConfigMap or Secret to the input, such as with kubectl get configmap NAME -o yaml, or create it in the lab's namespace.")
	CodeFileUnused = declare("document-file-unused", "nothing in the node names a file of filesFromConfigMap, filesFromSecret or filesFromURL",
		"The path of the file is relative, and no startup-config, license, bind, env-file or extra of the node is that path.",
		"Correct the path, or write an absolute one.")
	CodeURL = declare("document-url", "a file of filesFromURL cannot be fetched or has another digest",
		"The URL does not answer, or the file has changed.",
		"Correct the URL or the digest.")
	CodeIgnored = declare("document-ignored", "a field or object of clabernetes has no counterpart in c9s",
		"c9s works without it, or has another way.",
		"See docs/guides/migrate.md.")
	CodeLauncher = declare("document-launcher", "fields of the launcher of clabernetes 0.8 have no effect",
		"c9s has no launcher: the kubelet runs the device images.",
		"Remove the fields.")
	CodeProbe = declare("document-probe", "a status probe is not the same in c9s",
		"c9s tests TCP ports and what the kind tests. It does not log in.",
		"Check the probes in a c9s.yaml of your own if the difference matters.")
	CodeAdopt = declare("document-adopt", "--adopt found no addresses and ids",
		"The documents have no status, or it has no allocations: clabernetes 0.8 writes no addresses.",
		"Export the documents from the cluster, or leave --adopt out.")
)

func declare(code diag.Code, text, cause, remedy string) diag.Code {
	return diag.Declare(code, diag.Explanation{Stage: diag.StageReading, Text: text, Cause: cause, Remedy: remedy})
}
