package clock

import "encoding/binary"

// clockGettime is the name of clock_gettime in the vDSO, see vdso(7).
const clockGettime = "__vdso_clock_gettime"

// pinned is clock_gettime(clock int32, *timespec) with CLOCK_REALTIME at the given
// second; the other clocks are the kernel's.
func pinned(second int64) []byte {
	code := []byte{
		0x85, 0xff, // test edi, edi
		0x75, 24, // jnz other
		0x48, 0xb8, // mov rax, second
	}
	code = binary.LittleEndian.AppendUint64(code, uint64(second))
	return append(code,
		0x48, 0x89, 0x06, // mov [rsi], rax
		0x48, 0xc7, 0x46, 0x08, 0, 0, 0, 0, // mov qword [rsi+8], 0
		0x31, 0xc0, // xor eax, eax
		0xc3,                        // ret
		0xb8, 228, 0x00, 0x00, 0x00, // other: mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0xc3, // ret
	)
}
