//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// unplug pulls the device with the given id out of a running machine, by
// QEMU's monitor protocol: https://www.qemu.org/docs/master/interop/qmp-spec.html
func unplug(monitor, id string) error {
	conn, err := net.Dial("unix", monitor)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	answers := json.NewDecoder(conn)
	var greeting struct{ QMP *json.RawMessage }
	if err := answers.Decode(&greeting); err != nil || greeting.QMP == nil {
		return fmt.Errorf("monitor does not greet: %w", err)
	}
	for _, command := range []string{
		`{"execute": "qmp_capabilities"}`,
		fmt.Sprintf(`{"execute": "device_del", "arguments": {"id": %q}}`, id),
	} {
		if _, err := fmt.Fprintln(conn, command); err != nil {
			return err
		}
		if err := answered(answers); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

// answered waits for the answer to a command. Events may come before it.
func answered(answers *json.Decoder) error {
	for {
		var answer struct {
			Return *json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := answers.Decode(&answer); err != nil {
			return err
		}
		switch {
		case answer.Error != nil:
			return errors.New(answer.Error.Desc)
		case answer.Return != nil:
			return nil
		}
	}
}
