"""A filter of system calls, for what neither a namespace nor Landlock covers: sockets, signals, memory of others.

The filter is a program for the kernel's BPF machine (``linux/filter.h``): comparisons with the call's number and with
arguments that are plain numbers. It stays for good, for every process that a worker starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""For each machine its column in the tables below, and its number in ``linux/audit.h``."""

# The numbers of a call on x86_64 and on aarch64; -1 where there is none.
_SOCKETS = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242),
}  # fmt: skip
_TO_LISTEN = ("socket", "bind", "listen")
_PROCESSES = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "tkill": (200, 130),
}  # fmt: skip
_MOUNTS = {
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "mknod": (133, -1), "mknodat": (259, 33),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
}  # fmt: skip
_KERNEL = {
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "iopl": (172, -1), "ioperm": (173, -1), "vhangup": (153, 58), "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
}  # fmt: skip
"""What no check needs of the kernel. Memory behind a file of no name is none that is measured."""
_SHARED = {
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgctl": (71, 187),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "semget": (64, 190), "semctl": (66, 191), "semop": (65, 193),
    "semtimedop": (220, 192), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
_ATTRIBUTES = {
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1),
    "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1),
    "utimensat": (280, 88), "futimesat": (261, -1), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "file_setattr": (469, 469), "truncate": (76, 45),
}  # fmt: skip
"""What changes a file without opening it for writing: Landlock has no say in most of it."""

_OWNER_COMMANDS = (8, 10, 15)
"""``fcntl`` with F_SETOWN, F_SETSIG, F_SETOWN_EX: signals to others by way of a file."""
_DEVICE_COMMANDS = (0x5412, 0x541C, 0x8901, 0x8902, 0x40086602)
"""``ioctl`` with TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP, FS_IOC_SETFLAGS."""
_NEW_NAMESPACES = 0x7E020000
_O_TRUNC, _O_ACCMODE = 0o1000, 3
_LOCAL = 1
"""AF_UNIX."""
_CONNECTED_TYPES = (1, 5)
"""SOCK_STREAM and SOCK_SEQPACKET."""

_Code = list[tuple[int, int, int, int]]


def available() -> bool:
    """Whether there is a filter for this machine."""
    return sys.platform.startswith("linux") and platform.machine() in _MACHINES and sys.maxsize > 2**32


def install(attributes: bool, gpu: bool) -> None:
    """Filters the calls of this process and of all that it starts. Raises OSError.

    ``attributes``: refuse changes of permissions, owners and times too, where nothing else holds them. ``gpu``: let it
    listen on a local socket, as CUDA's driver does when it starts, and fails without.
    """
    program = b"".join(struct.pack("=HBBI", *one) for one in _filter(os.getpid(), attributes, gpu))
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    given = Program(len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(given)):
        number = ctypes.get_errno()
        raise OSError(number, f"no filter of system calls: {os.strerror(number)}")


def _filter(own: int, attributes: bool, gpu: bool) -> _Code:
    column, machine = _MACHINES[platform.machine()]
    code: _Code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    refused = _SOCKETS | _PROCESSES | _MOUNTS | _KERNEL | _SHARED | (_ATTRIBUTES if attributes else {})
    for name, numbers in refused.items():
        if not gpu or name not in _TO_LISTEN:
            code += _when(numbers[column], [(_RETURN, 0, 0, _ERRNO | errno.EPERM)])
    if gpu:
        code += _when(_SOCKETS["socket"][column], _only_local())
    for numbers, block in _conditions(own):
        code += _when(numbers[column], block)
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def _conditions(own: int) -> list[tuple[tuple[int, int], _Code]]:
    """Calls that depend on an argument. What is refused as unknown (ENOSYS), libraries do in an older way."""
    unknown: _Code = [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    truncates = {argument: _refuse_truncation(argument) for argument in (1, 2)}
    return [
        ((435, 435), unknown),  # clone3 and openat2: their flags are not in a register.
        ((437, 437), unknown),
        ((62, 129), _only(0, (0, own))),  # kill
        ((234, 131), _only(0, (own,))),  # tgkill
        ((129, 138), _only(0, (own,))),  # rt_sigqueueinfo
        ((297, 240), _only(0, (own,))),  # rt_tgsigqueueinfo
        ((302, 261), _only(0, (0, own))),  # prlimit64
        ((72, 25), _never(1, _OWNER_COMMANDS)),  # fcntl
        ((16, 29), _never(1, _DEVICE_COMMANDS)),  # ioctl
        ((56, 220), [_argument(0), (_ANY_BIT, 0, 1, _NEW_NAMESPACES), *_refuse(), *_allow()]),  # clone
        # A datagram socket of a pair, which SOCK_RAW gives too, sends to any other by name.
        ((53, 199), _only(1, _CONNECTED_TYPES, mask=0xF)),  # socketpair
        ((2, -1), truncates[1]),  # open
        ((257, 56), truncates[2]),  # openat
    ]


def _only_local() -> _Code:
    """Sockets of this machine that have to be connected before they send anything: no datagrams, no network."""
    return [_argument(0), (_EQUAL, 1, 0, _LOCAL), *_refuse(), *_only(1, _CONNECTED_TYPES, mask=0xF)]


def _refuse_truncation(argument: int) -> _Code:
    """No O_TRUNC with O_RDONLY, which empties a file that may only be read."""
    return [
        _argument(argument),
        (_ANY_BIT, 0, 3, _O_TRUNC),
        (_AND, 0, 0, _O_ACCMODE),
        (_EQUAL, 0, 1, os.O_RDONLY),
        *_refuse(),
        *_allow(),
    ]


def _when(number: int, block: _Code) -> _Code:
    """A block, which ends in a return on each way, for one call."""
    return [] if number < 0 else [(_EQUAL, 0, len(block), number), *block]


def _only(argument: int, values: tuple[int, ...], mask: int = 0xFFFFFFFF) -> _Code:
    tests: _Code = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [_argument(argument), (_AND, 0, 0, mask), *tests, *_refuse(), *_allow()]


def _never(argument: int, values: tuple[int, ...]) -> _Code:
    tests: _Code = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [_argument(argument), *tests, *_allow(), *_refuse()]


def _argument(index: int) -> tuple[int, int, int, int]:
    """The lower half of an argument, on these little-endian machines."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _refuse() -> _Code:
    return [(_RETURN, 0, 0, _ERRNO | errno.EPERM)]


def _allow() -> _Code:
    return [(_RETURN, 0, 0, _ALLOW)]
