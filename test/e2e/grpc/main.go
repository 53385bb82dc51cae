// Command grpc is a gRPC server of a device, and a client as those for gNMI are: it connects
// through the proxy that HTTPS_PROXY names, as grpc-go does by itself.
//
//	grpc serve ADDRESS
//	grpc watch ADDRESS
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	var do func(string) error
	if len(os.Args) == 3 {
		do = map[string]func(string) error{"serve": serve, "watch": watch}[os.Args[1]]
	}
	if do == nil {
		fmt.Fprintln(os.Stderr, "usage: grpc serve|watch ADDRESS")
		os.Exit(2)
	}
	if err := do(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers for ever. Its state changes twice a second, so that a stream has something to say.
func serve(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	states := health.NewServer()
	go func() {
		for i := 0; ; i++ {
			states.SetServingStatus("c9s", []grpc_health_v1.HealthCheckResponse_ServingStatus{
				grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING,
			}[i%2])
			time.Sleep(500 * time.Millisecond)
		}
	}()
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, states)
	return s.Serve(l)
}

// watch makes one call, and one that streams, over the same connection.
func watch(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	request := &grpc_health_v1.HealthCheckRequest{Service: "c9s"}
	if _, err := client.Check(ctx, request, grpc.WaitForReady(true)); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	stream, err := client.Watch(ctx, request)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	for range 4 {
		answer, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		fmt.Println(answer.GetStatus())
	}
	return nil
}
