/** Recognizes the options of the configuration that opt out or remove a person. */

/** Returns whether the option tells who is unsubscribed from everything. */
export function isUnsubscribedOption(option: string): boolean {
  return /^contacts\.unsubscribed\b/.test(option);
}

/** Returns whether the option tells who does not want a channel, or no mail at all. */
export function isOptOutOption(option: string): boolean {
  return isUnsubscribedOption(option) || /^contacts\.channels\[.*\.optOut$/.test(option);
}

/** Returns whether an unknown word of the option may be an opt-out or a deletion. */
export function isDecisiveOption(option: string): boolean {
  return isOptOutOption(option) || /^contacts\.deleted\b/.test(option);
}
