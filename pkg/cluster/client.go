// Package cluster puts a rendered lab into a Kubernetes cluster and takes care of
// it there: apply, prune, wait, compare, remove.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// FieldManager is c9s' name in server-side apply (metadata.managedFields).
const FieldManager = "c9s"

// Target names a cluster as kubectl does; the zero value is the current context
// of $KUBECONFIG or ~/.kube/config, or the Pod's own cluster.
type Target struct {
	Kubeconfig string
	Context    string
	// Outage, if set, is called once each time the API server cannot be reached any
	// more; the requests are repeated.
	Outage func(error)
}

// Client is a connection to one cluster.
type Client struct {
	Config  *rest.Config
	Typed   kubernetes.Interface
	Dynamic dynamic.Interface
	// Context is the kubeconfig's context, "" inside a cluster.
	Context string
	// Namespace is the context's.
	Namespace string
}

// requestTimeout bounds every single request that is no watch.
const connectTimeout = 15 * time.Second

// Connect reads the kubeconfig and asks the API server for its version, so that
// what is wrong with either is reported before anything is done.
func Connect(ctx context.Context, t Target) (*Client, error) {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.Context = &t.Kubeconfig, &t.Context
	// The API server's own priority and fairness is what limits a client.
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.QPS, c.Burst = -1, -1
		c.UserAgent = "c9s"
		c.WarningHandler = rest.NoWarnings{}
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &guard{next: next, outage: outage, note: t.Outage}
		})
		return c
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(raw.Contexts) == 0 && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		// kubectl would try http://localhost:8080.
		return nil, notConfigured(clientcmd.ErrEmptyConfig)
	}
	if err == nil {
		if err := complete(raw, t.Context); err != nil {
			return nil, err
		}
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, notConfigured(err)
	}
	c := &Client{Config: config}
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf // less to read than JSON
	if c.Typed, err = kubernetes.NewForConfig(typed); err != nil {
		return nil, err
	}
	if c.Dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if c.Namespace, _, err = flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, err
	}
	c.Context = raw.CurrentContext
	if t.Context != "" {
		c.Context = t.Context
	}
	return c, c.reachable(ctx)
}

// complete finds a context without its cluster, for which client-go would try
// http://localhost:8080.
func complete(raw clientcmdapi.Config, name string) error {
	if name == "" {
		name = raw.CurrentContext
	}
	context, ok := raw.Contexts[name]
	if !ok || raw.Clusters[context.Cluster] != nil {
		return nil // what else is wrong is reported by client-go
	}
	return fmt.Errorf("reading the kubeconfig: context %q names the cluster %q, which the file does not define", name, context.Cluster)
}

func notConfigured(err error) error {
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, clientcmd.ErrEmptyConfig) {
		return errors.New("no cluster: there is no kubeconfig with a current context (set KUBECONFIG or --kubeconfig, or start a cluster with 'make cluster')")
	}
	return fmt.Errorf("reading the kubeconfig: %w", err)
}

func (c *Client) reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, impatient{}, true), connectTimeout)
	defer cancel()
	err := c.Typed.Discovery().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	var op *net.OpError
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s rejected your credentials (context %q): log in again", c.Config.Host, c.Context)
	case errors.As(err, &op), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the API server at %s (context %q) is unreachable: %w", c.Config.Host, c.Context, err)
	default:
		return fmt.Errorf("asking the API server at %s (context %q): %w", c.Config.Host, c.Context, err)
	}
}
