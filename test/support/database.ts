/** A database server that tests may do anything in. */
export interface TestDatabase {
  /** As somebody who may do everything, in a database of its own. */
  url: string;
  /** File of the authority that signed its certificate; undefined: it is not encrypted. */
  ca: string | undefined;
  /** Statements, one after the other. */
  run(sql: string): Promise<void>;
  close(): Promise<void>;
}
