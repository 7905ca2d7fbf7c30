/** Recognizes the options of the configuration that opt out or remove a person as a whole. */

/** Returns whether the option tells who is unsubscribed from everything. */
export function isUnsubscribedOption(option: string): boolean {
  return /^contacts\.unsubscribed\b/.test(option);
}

/** Returns whether the option tells who is unsubscribed from everything, or deleted. */
export function isDecisiveOption(option: string): boolean {
  return isUnsubscribedOption(option) || /^contacts\.deleted\b/.test(option);
}
