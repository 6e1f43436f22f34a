// The smallest real picture, sound and helpers that the fixture's tools, resources and prompts answer with.

export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
export const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

export const text = (value) => ({ type: 'text', text: value });
export const image = { type: 'image', data: PNG, mimeType: 'image/png' };
export const audio = { type: 'audio', data: WAV, mimeType: 'audio/wav' };
export const embedded = (uri, mimeType, value) => ({ type: 'resource', resource: { uri, mimeType, text: value } });
