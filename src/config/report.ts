// Collects every complaint and every warning about one document, in the order of the lines.

import type { Complaint, Finding, Keys } from './complaints.ts';
import { complaintOf, type Document, repeatedKeys } from './document.ts';

export type Report = {
  complain(finding: Finding): void;
  warn(finding: Finding): void;
  /** The same report, for a part of the document: `keys` lead to it, and each sentence begins with `subject`. */
  about(keys: Keys, subject: string): Report;
  readonly complaints: Complaint[];
  readonly warnings: Complaint[];
};

export function openReport(document: Document): Report {
  const isBroken = document.complaints.length > 0;
  const complaints = [...document.complaints, ...repeatedKeys(document, document.tree)];
  const warnings: Complaint[] = [];
  const about = (prefix: Keys, subject: string): Report => {
    const note = (list: Complaint[], finding: Finding) => {
      // What seems to be missing from a broken file may only be unreadable.
      if (isBroken && finding.isMissing) return;
      const placed = { ...finding, keys: [...prefix, ...finding.keys], message: subject + finding.message };
      list.push(complaintOf(document, placed));
    };
    return {
      complain: (finding) => note(complaints, finding),
      warn: (finding) => note(warnings, finding),
      about: (keys, inner) => about([...prefix, ...keys], subject + inner),
      get complaints() {
        return complaints.toSorted(byPlace);
      },
      get warnings() {
        return warnings.toSorted(byPlace);
      },
    };
  };
  return about([], '');
}

const byPlace = (a: Complaint, b: Complaint): number => a.line - b.line || a.column - b.column;
