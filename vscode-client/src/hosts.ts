/** Where code would be sent, and what must not be seen on the way. Nothing here knows the editor. */

const OPENAI = "https://api.openai.com/v1";

/** The host of an address, as the server names it; OpenAI's where none is set. */
export function hostOf(baseUrl: string): string {
  return /^[a-z][\w+.-]*:\/\/([^/?#]*)/i.exec(baseUrl.trim() || OPENAI)?.[1] ?? "";
}

/** The question before code goes to a host for the first time. */
export function sendQuestion(prompt: { host: string; tokens: number; fixes: unknown[] }, file: string): string {
  const fixes = `${prompt.fixes.length} similar fixed ${prompt.fixes.length === 1 ? "bug" : "bugs"}`;
  return (
    `Send code of ${file} to ${prompt.host}? What would be sent first is shown: about ` +
    `${prompt.tokens.toLocaleString("en")} tokens, with ${fixes}. Later rounds add the model's answers and what the ` +
    "check said of them. This is asked once for this workspace and host."
  );
}

/** The same object, but texts that are given to its methods have no secret in them. */
export function hiding<T extends object>(target: T, secrets: ReadonlySet<string>): T {
  const clean = (value: unknown) => {
    let text = value;
    for (const secret of secrets) {
      for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) {
        text = typeof text === "string" ? text.replaceAll(form, "***") : text;
      }
    }
    return text;
  };
  return new Proxy(target, {
    get(object, name) {
      const value = Reflect.get(object, name, object);
      return typeof value === "function" ? (...args: unknown[]) => value.apply(object, args.map(clean)) : value;
    },
  });
}
