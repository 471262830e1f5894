/** What the status item and the question before the first check say. Nothing here knows the editor. */

import type { Containment, Status } from "./protocol";

const PARTS: Record<"files" | "reads" | "network" | "processes", string> = {
  files: "changes of files",
  reads: "reading files",
  network: "the network",
  processes: "other processes",
};
const HOLDERS: Record<string, string> = {
  namespace: "a namespace",
  bubblewrap: "bubblewrap",
  landlock: "Landlock",
  seccomp: "seccomp",
  python: "Python alone",
  none: "nothing",
};
const WEAK = new Set(["python", "none"]);
const LONGEST = 40;

/** All checks in one line: `checking net.py: Net, 2 more`. */
export function checking(status: Pick<Status, "uri" | "message" | "waiting">): string {
  const file = status.uri ? decodeURIComponent(status.uri.slice(status.uri.lastIndexOf("/") + 1)) : "";
  const step = status.message?.replace(/^checking /, "");
  const what = clipped([file, step].filter(Boolean).join(": "));
  const more = status.waiting ? `, ${status.waiting} more` : "";
  return `checking${what ? ` ${what}` : ""}${more}`;
}

/** A name that fits into the status bar: its start, up to the end of a word where there is one. */
export function clipped(text: string, longest = LONGEST): string {
  if (text.length <= longest) {
    return text;
  }
  const start = text.slice(0, longest);
  const space = start.lastIndexOf(" ");
  return `${space > longest / 2 ? start.slice(0, space) : start}…`;
}

/** `Checks are held by Landlock (changes of files, reading files) and seccomp (the network)`. */
export function heldBy(containment: Containment): string {
  const found = new Map<string, string[]>();
  for (const [part, what] of Object.entries(PARTS)) {
    const holder = containment[part as keyof typeof PARTS];
    if (!WEAK.has(holder)) {
      found.set(holder, [...(found.get(holder) ?? []), what]);
    }
  }
  const parts = [...found].map(([holder, what]) => `${HOLDERS[holder] ?? holder} (${what.join(", ")})`);
  const last = parts.pop();
  if (!last) {
    return "Checks are held by Python alone";
  }
  return `Checks are held by ${parts.length ? `${parts.join(", ")} and ${last}` : last}`;
}

/** What this system does not hold, as a sentence; nothing where all is held. */
export function notHeld(containment: Containment): string {
  return containment.not_held.length ? `Not held here: ${containment.not_held.join("; ")}.` : "";
}

/** The question before the first check of a workspace. */
export function consentQuestion(containment: Containment | undefined): string {
  const asked =
    "Check conversions by running this workspace's code? t2j runs the classes and functions of a file, and their JAX " +
    "versions, in limited processes of their own. They run as you";
  if (!containment) {
    return `${asked}: a process is not a sandbox.`;
  }
  const weak = notHeld(containment);
  return weak ? `${asked}. ${weak}` : `${asked}. ${heldBy(containment)}.`;
}
