/** Parses XML as it arrives, in bounded memory, because a small zip can hold gigabytes of XML. */
import { SaxesParser, type SaxesTagNS } from 'saxes';
import { markedEncoding } from '../shared/files/detect-encoding.ts';

const MIB = 1024 * 1024;
/** The maximum length between two tags. A cell may hold 1 MiB. */
const TEXT_CHARACTERS = 4 * MIB;
/** The maximum length of one piece: a row, a shared string, or the whole of a small part. */
const PIECE_CHARACTERS = 32 * MIB;
const MOST_LEVELS = 64;

/** The attributes of an element: `name`, or `namespace name` where a prefix stood. */
export type Attributes = Readonly<Record<string, string>>;

/**
 * Receives the parts of a document. Elements of the namespace of its root come with their local
 * names. Those of any other namespace are extensions, which come with an empty name: an extension
 * may give its elements the same local names.
 */
export interface XmlReader {
  opened(name: string, attributes: Attributes): void;
  /** Returns whether a piece ends here. */
  closed(name: string): boolean;
  text?(text: string): void;
}

/** XML that cannot be read any further. The message states the reason and begins with a verb. */
export class XmlFault extends Error {}

/** Parses a document. Yields the number of bytes of each chunk that was read. Throws XmlFault. */
export async function* parseXml(
  chunks: AsyncIterable<Buffer>,
  reader: XmlReader,
): AsyncGenerator<number> {
  const parser = boundedParser(reader);
  let decode: ReturnType<typeof decoderFor> | undefined;
  for await (const chunk of chunks) {
    decode ??= decoderFor(chunk);
    parser.write(decode(chunk));
    yield chunk.length;
  }
  parser.write(decode?.() ?? '');
  parser.end();
}

function boundedParser(reader: XmlReader) {
  const parser = new SaxesParser({ xmlns: true, position: false });
  let root: string | undefined;
  const nameOf = ({ uri, local }: SaxesTagNS) => (uri === root ? local : '');
  let fault: XmlFault | undefined;
  let [levels, sinceTag, sincePiece] = [0, 0, 0];
  // After an error, saxes continues with a guess.
  parser.on('error', () => void (fault ??= new XmlFault('holds no well-formed XML')));
  parser.on('opentag', (tag) => {
    root ??= tag.uri;
    sinceTag = 0;
    levels += 1;
    if (levels > MOST_LEVELS) fault ??= new XmlFault('nests its elements too deeply');
    if (fault) return;
    const attributes = Object.values(tag.attributes).map(
      ({ uri, local, value }): [string, string] => {
        return [uri === '' ? local : `${uri} ${local}`, value];
      },
    );
    reader.opened(nameOf(tag), Object.fromEntries(attributes));
  });
  parser.on('closetag', (tag) => {
    sinceTag = 0;
    levels -= 1;
    if (!fault && reader.closed(nameOf(tag))) sincePiece = 0;
  });
  const text = (found: string) => {
    if (!fault) reader.text?.(found);
  };
  parser.on('text', text);
  parser.on('cdata', text);
  return {
    write(part: string) {
      sinceTag += part.length;
      sincePiece += part.length;
      if (sinceTag > TEXT_CHARACTERS || sincePiece > PIECE_CHARACTERS) {
        throw new XmlFault('holds more than 32 MiB in one row, or 4 MiB in one cell');
      }
      parser.write(part);
      if (fault) throw fault;
    },
    end() {
      parser.close();
      if (fault) throw fault;
    },
  };
}

/** Returns the decoder of a part that begins with `sample`. Call it with nothing at the end. */
function decoderFor(sample: Buffer): (chunk?: Buffer) => string {
  const decoder = new TextDecoder(markedEncoding(sample) ?? 'utf-8', { fatal: true });
  return (chunk) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new XmlFault('holds text that is neither UTF-8 nor UTF-16');
    }
  };
}
