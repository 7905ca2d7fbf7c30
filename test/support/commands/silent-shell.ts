/** A shell that prints nothing and asks nobody. */
export const silentShell = {
  env: {},
  print: () => undefined,
  note: () => undefined,
  progress: () => undefined,
  terminal: false,
  interactive: false,
} as const;
