// Numbers, sizes, times and values of any SQL type, as text for people.

import { isNumeric, isWindow, millis } from "./columns.js";

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const count = (value) => plain.format(value);

export const compact = (value) =>
  Math.abs(value) < 10_000 ? plain.format(Number(value.toPrecision(4))) : short.format(value);

export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

export function perSecond(value) {
  if (value === 0) return "0 rows/s";
  return `${value < 10 ? value.toFixed(1) : compact(Math.round(value))} rows/s`;
}

export function bytes(value) {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  const power = value < 1_000 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  return `${compact(Number((value / 1_000 ** power).toPrecision(3)))} ${units[power]}`;
}

export function seconds(value) {
  if (value < 1) return `${Math.round(value * 1_000)} ms`;
  if (value < 100) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  if (value < 6_000) return `${Math.round(value / 60)} min`;
  return value < 172_800 ? `${Math.round(value / 3_600)} h` : `${Math.round(value / 86_400)} days`;
}

const iso = (time) => new Date(time).toISOString();

export const clock = (time) => iso(time).slice(11, 19);

/** Date and time, without what is zero. */
export const moment = (time) =>
  iso(time)
    .slice(0, 23)
    .replace("T", " ")
    .replace(/(:\d\d)\.000$/, "$1");

const isToday = (time) => iso(time).slice(0, 10) === iso(Date.now()).slice(0, 10);

/** A window, with the date unless it is today's. */
export function windowText(start, end) {
  const [from, to] = [iso(start).slice(0, 10), iso(end - 1).slice(0, 10)];
  const whole = start % 86_400_000 === 0 && end % 86_400_000 === 0;
  if (whole) return from === to ? from : `${from} – ${to}`;
  const minutes = start % 60_000 === 0 && end % 60_000 === 0;
  const brief = (time) =>
    iso(time)
      .slice(11, minutes ? 16 : 23)
      .replace(/\.000$/, "");
  const day = isToday(start) ? "" : `${from} `;
  return from === to ? `${day}${brief(start)} – ${brief(end)}` : `${moment(start)} – ${moment(end)}`;
}

/** The digits of a number in groups of three, none of them lost. */
function digits(text) {
  const [, sign, whole, rest] = /^(-?)(\d*)(.*)$/s.exec(text);
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + rest;
}

export function value(data, type) {
  if (data === null || data === undefined) return "NULL";
  if (isWindow(type) && data.start && data.end) return windowText(millis(data.start), millis(data.end));
  if (isNumeric(type)) return digits(String(data));
  if (/^TIMESTAMP/i.test(type)) return moment(millis(data)).slice(isToday(millis(data)) ? 11 : 0);
  if (typeof data === "object") return JSON.stringify(data);
  return String(data);
}

export const list = (names) =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
