import { Invalid } from './errors.ts';

/** Encodes values of one type as JSON text, and decodes that text. */
export interface StoredJson<Value> {
  encode(value: Value): string;
  /** Throws Invalid if the text is damaged. */
  decode(text: string): Value;
}

/**
 * Returns the codec of values that only this program writes, into its own files. They are decoded
 * as they were encoded, without a check of their form; what others may write goes through a schema.
 * `what` names the value in the error.
 */
export function storedJson<Value>(what: string): StoredJson<Value> {
  const parse: StoredJson<Value>['decode'] = JSON.parse;
  return {
    encode: (value) => JSON.stringify(value),
    decode(text) {
      try {
        return parse(text);
      } catch (error) {
        throw new Invalid(`${what} is damaged: it is no JSON text`, {
          fix: 'restore a backup, or move the snapshot away and run `crm-mirror sync`',
          cause: error,
        });
      }
    },
  };
}
