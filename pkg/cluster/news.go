package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/c9s-lab/c9s/pkg/contract"
	"github.com/c9s-lab/c9s/pkg/controller"
)

// errNoNews reports that nobody can be asked for news.
var errNoNews = errors.New("no controller is there to ask for news")

// maxTag is the longest tag, in bytes.
const maxTag = 256

// News waits until the lab's controller has a status with another tag than since, for some
// seconds at most, and returns the tag that it has then. It fails where there is no
// controller that answers.
func (c *Client) News(ctx context.Context, l Found, since string) (string, error) {
	pods, err := c.controllers(ctx, l)
	if err != nil {
		return "", err
	}
	err = errNoNews
	for i := range pods {
		var tag string
		if tag, err = c.newsOf(ctx, &pods[i], since); err == nil {
			return tag, nil
		}
	}
	return "", err
}

func (c *Client) newsOf(ctx context.Context, pod *corev1.Pod, since string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, impatient{}, true), controller.HoldNews+askTimeout)
	defer cancel()
	body, err := c.Typed.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").
		Name(fmt.Sprintf("%s:%d", pod.Name, contract.ControllerPort)).SubResource("proxy").Suffix(strings.TrimPrefix(controller.PathNews, "/")).
		Param(controller.QuerySince, since).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer body.Close()
	tag, err := io.ReadAll(io.LimitReader(body, maxTag))
	return string(tag), err
}
