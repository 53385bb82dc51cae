package prepare

import "syscall"

func setUmask(mask int) (previous int) { return syscall.Umask(mask) }
